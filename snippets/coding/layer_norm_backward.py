import torch
from torch import Tensor


def layer_norm_backward(
    grad_y: Tensor, x: Tensor, gain: Tensor, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """grad_y and x are (..., d), gain is (d,)."""
    wide = torch.promote_types(x.dtype, torch.float32)
    g, h = grad_y.to(wide), x.to(wide)
    c = h - h.mean(dim=-1, keepdim=True)
    r = torch.rsqrt(c.square().mean(dim=-1, keepdim=True) + eps)
    n, u = c * r, g * gain
    along_ones = u.mean(dim=-1, keepdim=True)
    along_n = n * (u * n).mean(dim=-1, keepdim=True)
    grad_x = r * (u - along_ones - along_n)
    grad_gain = (g * n).reshape(-1, x.shape[-1]).sum(dim=0)
    grad_bias = g.reshape(-1, x.shape[-1]).sum(dim=0)
    return grad_x.to(x.dtype), grad_gain.to(x.dtype), grad_bias.to(x.dtype)
