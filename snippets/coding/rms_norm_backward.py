import torch
from torch import Tensor


def rms_norm_backward(
    grad_y: Tensor, x: Tensor, gain: Tensor, eps: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """grad_y and x are (..., d), gain is (d,)."""
    wide = torch.promote_types(x.dtype, torch.float32)
    g, h = grad_y.to(wide), x.to(wide)
    r = torch.rsqrt(h.square().mean(dim=-1, keepdim=True) + eps)
    n, u = h * r, g * gain
    grad_x = r * (u - n * (u * n).mean(dim=-1, keepdim=True))
    grad_gain = (g * n).reshape(-1, x.shape[-1]).sum(dim=0)
    return grad_x.to(x.dtype), grad_gain.to(x.dtype)
