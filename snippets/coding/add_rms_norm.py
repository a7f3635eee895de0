import torch
from torch import Tensor


def add_rms_norm(
    x: Tensor, residual: Tensor, gain: Tensor, eps: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """x and residual are (..., d). Normalizes the stream as it is stored."""
    stream = x + residual
    wide = stream.to(torch.promote_types(x.dtype, torch.float32))
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    y = wide * torch.rsqrt(mean_square + eps) * gain
    return y.to(x.dtype), stream
