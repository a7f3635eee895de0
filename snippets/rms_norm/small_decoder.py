import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Causal self-attention; x is (batch, time, d)."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.reader = nn.Linear(d, 3 * d)  # q, k, v
        self.writer = nn.Linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.reader(x).chunk(3, dim=-1)
        )  # each (batch, heads, time, d / heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.writer(y.transpose(1, 2).flatten(start_dim=2))


class FeedForward(nn.Module):
    """Two linear layers around an activation; x is (batch, time, d)."""

    def __init__(self, d: int, activation: nn.Module) -> None:
        super().__init__()
        self.reader = nn.Linear(d, 4 * d)
        self.activation = activation
        self.writer = nn.Linear(4 * d, d)

    def forward(self, x: Tensor) -> Tensor:
        return self.writer(self.activation(self.reader(x)))


class Branch(nn.Module):
    """One Pre-Norm branch of the residual stream: x + body(norm(x))."""

    def __init__(self, norm: nn.Module, body: nn.Module) -> None:
        super().__init__()
        self.norm, self.body = norm, body

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(self.norm(x))


class SmallDecoder(nn.Module):
    """A Pre-Norm decoder over bytes.

    tokens is (batch, time), int64 in [0, 256), time <= context; the result
    is (batch, time, 256) logits. norm builds a norm from d, activation the
    activation of a feed-forward branch.
    """

    def __init__(
        self,
        d: int,
        layers: int,
        heads: int,
        context: int,
        norm: type[nn.Module] = nn.LayerNorm,
        activation: type[nn.Module] = nn.GELU,
    ) -> None:
        super().__init__()
        self.token = nn.Embedding(256, d)
        self.position = nn.Embedding(context, d)
        self.branches = nn.ModuleList()
        for _ in range(layers):
            for body in (Attention(d, heads), FeedForward(d, activation())):
                self.branches.append(Branch(norm(d), body))
        self.norm = norm(d)
        self.head = nn.Linear(d, 256)
        for table in (self.token, self.position):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        time = torch.arange(tokens.shape[-1], device=tokens.device)
        x = self.token(tokens) + self.position(time)
        for branch in self.branches:
            x = branch(x)
        return self.head(self.norm(x))
