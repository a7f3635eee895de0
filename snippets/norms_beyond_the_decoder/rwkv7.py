import torch
from torch import Tensor

from snippets.layer_norm.reference import layer_norm


def removal_key(k: Tensor, scale: Tensor, heads: int) -> Tensor:
    """(..., d): scaled per feature, then each head divided by its length."""
    wide = torch.promote_types(k.dtype, torch.float32)
    parts = (k.to(wide) * scale.to(wide)).unflatten(-1, (heads, -1))
    length = parts.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    return (parts / length).flatten(-2).to(k.dtype)


def head_norm(
    y: Tensor, gain: Tensor, bias: Tensor, heads: int, eps: float = 64e-5
) -> Tensor:
    """GroupNorm with one group a head: (..., d), gain and bias (d,)."""
    wide = torch.promote_types(y.dtype, torch.float32)
    parts = y.to(wide).unflatten(-1, (heads, -1))
    normed = layer_norm(parts, eps=eps).flatten(-2)
    return (normed * gain.to(wide) + bias.to(wide)).to(y.dtype)
