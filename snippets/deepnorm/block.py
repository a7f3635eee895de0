# --8<-- [start:DeepNorm]
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F


class DeepNorm(nn.Module):
    """A residual connection: LayerNorm(alpha * x + branch(x)).

    x is (..., d) and so is branch(x). Wang et al. (2022), figure 2.
    """

    def __init__(
        self, branch: nn.Module, d: int, alpha: float, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.branch, self.alpha = branch, alpha
        self.norm = nn.LayerNorm(d, eps)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.alpha * x + self.branch(x))  # (1)!


# --8<-- [end:DeepNorm]


# --8<-- [start:branches]
linear = partial(nn.Linear, bias=False)


class Attention(nn.Module):
    """Causal self-attention; x is (batch, time, d)."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key = linear(d, d), linear(d, d)
        self.value, self.output = linear(d, d), linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )  # each (batch, heads, time, d / heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(y.transpose(1, 2).flatten(start_dim=2))


class FeedForward(nn.Module):
    """Two linear layers around ReLU; x is (batch, time, d)."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.up, self.down = linear(d, 4 * d), linear(4 * d, d)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.relu(self.up(x)))


# --8<-- [end:branches]


# --8<-- [start:initialize]
SCALED = {"value", "output", "up", "down"}
UNSCALED = {"query", "key"}


def initialize(branch: nn.Module, beta: float) -> None:
    """Draw branch's matrices as DeepNorm does, in place.

    Xavier normal with gain beta where the matrix carries the signal, with
    gain 1 for queries and keys. Raises ValueError for a linear layer of
    another name.
    """
    for name, layer in branch.named_modules():
        if isinstance(layer, nn.Linear):
            role = name.rpartition(".")[2]
            if role not in SCALED | UNSCALED:
                raise ValueError(f"no gain is known for {name!r}")
            gain = beta if role in SCALED else 1.0
            nn.init.xavier_normal_(layer.weight, gain)


# --8<-- [end:initialize]
