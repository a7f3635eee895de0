# --8<-- [start:Attention]
import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Causal self-attention; x is (batch, time, d).

    With scale_heads, each head's output is multiplied by one learned number.
    """

    def __init__(self, d: int, heads: int, scale_heads: bool) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
        self.head_scale = (
            nn.Parameter(torch.ones(heads)) if scale_heads else None
        )

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )  # each (batch, heads, time, d / heads)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        if self.head_scale is not None:
            y = y * self.head_scale[:, None, None]  # (1)!
        return self.out(y.transpose(1, 2).flatten(start_dim=2))


# --8<-- [end:Attention]


# --8<-- [start:FeedForward]
class FeedForward(nn.Module):
    """Two linear layers around GELU; scale_fc normalizes between them."""

    def __init__(self, d: int, scale_fc: bool) -> None:
        super().__init__()
        self.fc1 = nn.Linear(d, 4 * d)
        self.norm = nn.LayerNorm(4 * d) if scale_fc else nn.Identity()
        self.fc2 = nn.Linear(4 * d, d)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.norm(F.gelu(self.fc1(x))))  # (1)!


# --8<-- [end:FeedForward]


# --8<-- [start:Block]
class Block(nn.Module):
    """Pre-LN block with NormFormer's additions; x is (batch, time, d).

    The switches have fairseq's names. All False is Pre-LN; the first three
    True is NormFormer, Shleifer et al. (2021); scale_resids is optional.
    """

    def __init__(
        self,
        d: int,
        heads: int,
        scale_heads: bool = True,
        scale_attn: bool = True,
        scale_fc: bool = True,
        scale_resids: bool = False,
    ) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(d)
        self.attention = Attention(d, heads, scale_heads)
        self.output_norm = nn.LayerNorm(d) if scale_attn else nn.Identity()
        self.ffn_norm = nn.LayerNorm(d)
        self.ffn = FeedForward(d, scale_fc)
        self.residual_scale = (
            nn.Parameter(torch.ones(d)) if scale_resids else None
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.output_norm(self.attention(self.attention_norm(x)))
        y = self.ffn(self.ffn_norm(x))
        if self.residual_scale is not None:
            x = self.residual_scale * x  # (1)!
        return x + y


# --8<-- [end:Block]
