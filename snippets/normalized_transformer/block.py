# --8<-- [start:rotate]
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snippets.normalized_transformer.scale import Scale
from snippets.normalized_transformer.sphere import step_towards, unit


def rotate(x: Tensor) -> Tensor:
    """Rotary positions on adjacent pairs; x is (..., time, d), d even."""
    time, d = x.shape[-2:]
    wide = torch.promote_types(x.dtype, torch.float32)  # exact positions
    steps = torch.arange(0, d, 2, dtype=wide, device=x.device)
    place = torch.arange(time, dtype=wide, device=x.device)
    angle = place[:, None] * 10000 ** (-steps / d)  # (time, d / 2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


# --8<-- [end:rotate]


# --8<-- [start:NormalizedBlock]
class NormalizedBlock(nn.Module):
    """One layer of nGPT; h is (batch, time, d), all vectors of length one.

    Loshchilov et al. (2024), section 2.6. There is no norm layer: the matrices
    must be normalized outside, after each step of the optimizer.
    """

    def __init__(self, d: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads, self.d = heads, d
        self.query, self.key, self.value = (
            nn.Linear(d, d, bias=False) for _ in range(3)
        )
        self.attention_out = nn.Linear(d, d, bias=False)
        self.up, self.gate = (nn.Linear(d, inner, bias=False) for _ in range(2))
        self.feed_forward_out = nn.Linear(inner, d, bias=False)
        small = d**-0.5
        self.alpha_attention = Scale(d, init=0.05, scale=small)
        self.alpha_feed_forward = Scale(d, init=0.05, scale=small)
        self.s_qk = Scale(d, init=1.0, scale=small)
        self.s_u = Scale(inner, init=1.0, scale=1.0)
        self.s_v = Scale(inner, init=1.0, scale=1.0)

    def split(self, x: Tensor) -> Tensor:
        """(batch, time, d) to (batch, heads, time, d / heads)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(-3, -2)

    def attention(self, h: Tensor) -> Tensor:
        q, k, v = (
            self.split(each(h)) for each in (self.query, self.key, self.value)
        )
        s = self.s_qk().unflatten(0, (self.heads, 1, -1))
        q, k = (s * unit(rotate(each)) for each in (q, k))  # (1)!
        root = (self.d // self.heads) ** 0.5
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=root)
        return self.attention_out(y.transpose(-3, -2).flatten(-2))

    def feed_forward(self, h: Tensor) -> Tensor:
        u = self.s_u() * self.up(h)
        v = self.s_v() * self.d**0.5 * self.gate(h)  # (2)!
        return self.feed_forward_out(u * F.silu(v))

    def forward(self, h: Tensor) -> Tensor:
        alpha = self.alpha_attention().abs()  # (3)!
        h = step_towards(h, unit(self.attention(h)), alpha)
        alpha = self.alpha_feed_forward().abs()
        return step_towards(h, unit(self.feed_forward(h)), alpha)


# --8<-- [end:NormalizedBlock]
