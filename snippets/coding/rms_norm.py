import torch
from torch import Tensor


def rms_norm(x: Tensor, gain: Tensor, eps: float = 1e-6) -> Tensor:
    """x is (..., d). Zhang & Sennrich (2019), eps inside the root."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    y = wide * torch.rsqrt(mean_square + eps)
    return (y * gain).to(x.dtype)
