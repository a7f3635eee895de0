# --8<-- [start:Sizes]
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snippets.rms_norm.reference import RMSNorm


@dataclass(frozen=True)
class Sizes:
    """Sizes of a decoder; the defaults are MiniMind's of 2025."""

    d: int = 512  # features of the residual stream
    blocks: int = 8
    heads: int = 8  # query heads
    kv_heads: int = 2  # key and value heads, each shared by heads / kv_heads
    width: int = 64  # features of one head
    hidden: int = 1408  # features inside the feed-forward network
    vocabulary: int = 6400
    eps: float = 1e-5
    base: float = 1e6  # of the rotary frequencies
    qk_norm: bool = False


# --8<-- [end:Sizes]


# --8<-- [start:rotate]
def rotate(x: Tensor, base: float) -> Tensor:
    """Turn the feature pairs (i, i + width / 2) by their position's angle.

    x is (batch, heads, time, width); shape and dtype stay. The arithmetic is
    float32 (float64 for float64 input). RoPE, Su et al. (2021), with the
    pairing of Llama in transformers.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    time, half = x.shape[-2], x.shape[-1] // 2
    exponent = torch.arange(half, dtype=wide, device=x.device) / half
    position = torch.arange(time, dtype=wide, device=x.device)
    angle = position[:, None] * base**-exponent  # (time, width / 2)
    first, second = x.to(wide).chunk(2, dim=-1)
    turned = (
        first * angle.cos() - second * angle.sin(),
        second * angle.cos() + first * angle.sin(),
    )
    return torch.cat(turned, dim=-1).to(x.dtype)


# --8<-- [end:rotate]


# --8<-- [start:Attention]
class Attention(nn.Module):
    """Causal grouped-query attention; x is (batch, time, d)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        d, width = sizes.d, sizes.width
        self.width, self.base = width, sizes.base
        self.q = nn.Linear(d, sizes.heads * width, bias=False)
        self.k = nn.Linear(d, sizes.kv_heads * width, bias=False)
        self.v = nn.Linear(d, sizes.kv_heads * width, bias=False)
        self.out = nn.Linear(sizes.heads * width, d, bias=False)
        if sizes.qk_norm:
            self.q_norm = RMSNorm(width, sizes.eps)  # (1)!
            self.k_norm = RMSNorm(width, sizes.eps)
        else:
            self.q_norm = self.k_norm = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            linear(x).unflatten(-1, (-1, self.width))
            for linear in (self.q, self.k, self.v)
        )  # (batch, time, heads or kv_heads, width)
        q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        q, k = rotate(q, self.base), rotate(k, self.base)  # (2)!
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True
        )
        return self.out(y.transpose(1, 2).flatten(start_dim=2))


# --8<-- [end:Attention]


# --8<-- [start:Block]
class SwiGLU(nn.Module):
    """Gated feed-forward network, Shazeer (2020); x is (..., d)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.gate = nn.Linear(sizes.d, sizes.hidden, bias=False)
        self.up = nn.Linear(sizes.d, sizes.hidden, bias=False)
        self.down = nn.Linear(sizes.hidden, sizes.d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """Two Pre-Norm branches; x is (batch, time, d)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(sizes.d, sizes.eps)
        self.attention = Attention(sizes)
        self.ffn_norm = RMSNorm(sizes.d, sizes.eps)
        self.ffn = SwiGLU(sizes)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.ffn(self.ffn_norm(x))


# --8<-- [end:Block]


# --8<-- [start:Decoder]
class Decoder(nn.Module):
    """tokens (batch, time), int64, to logits (batch, time, vocabulary)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.d)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.blocks))
        self.norm = RMSNorm(sizes.d, sizes.eps)
        for parameter in self.parameters():
            if parameter.ndim > 1:  # matrices; the gains stay one
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embedding.weight)  # tied head


# --8<-- [end:Decoder]
