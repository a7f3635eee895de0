# --8<-- [start:placements]
from torch import Tensor, nn
from torch.nn import functional as F

from snippets.rms_norm.reference import RMSNorm


class NoNorm(nn.Module):
    """x + body(x): the attention half of HybridNorm."""

    def __init__(self, d: int, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


class PreNorm(NoNorm):
    """x + body(norm(x))"""

    def __init__(self, d: int, body: nn.Module) -> None:
        super().__init__(d, body)
        self.norm = RMSNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(self.norm(x))


class PostNorm(PreNorm):
    """norm(x + body(x))"""

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.body(x))


class NormedStream(PreNorm):
    """n + body(n) with n = norm(x): the feed-forward half of HybridNorm."""

    def forward(self, x: Tensor) -> Tensor:
        n = self.norm(x)
        return n + self.body(n)


class PeriNorm(PreNorm):
    """x + out_norm(body(norm(x)))"""

    def __init__(self, d: int, body: nn.Module) -> None:
        super().__init__(d, body)
        self.out_norm = RMSNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.out_norm(self.body(self.norm(x)))


# --8<-- [end:placements]


# --8<-- [start:bodies]
class Attention(nn.Module):
    """Causal self-attention over (batch, time, d); qkv_norm is per head."""

    def __init__(self, d: int, heads: int, qkv_norm: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.out = nn.Linear(d, d, bias=False)
        self.norms = nn.ModuleList(
            RMSNorm(d // heads) if qkv_norm else nn.Identity() for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (
            norm(part.unflatten(-1, (self.heads, -1))).transpose(1, 2)
            for norm, part in zip(self.norms, parts, strict=True)
        )  # each (batch, heads, time, d / heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(start_dim=2))


def feed_forward(d: int) -> nn.Sequential:
    up, down = nn.Linear(d, 4 * d, bias=False), nn.Linear(4 * d, d, bias=False)
    return nn.Sequential(up, nn.GELU(), down)


# --8<-- [end:bodies]
