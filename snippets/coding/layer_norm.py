import torch
from torch import Tensor


def layer_norm(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """x is (..., d). Ba et al. (2016), eq. 3 and 4, eps inside the root."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    centred = wide - wide.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    y = centred * torch.rsqrt(variance + eps)
    return (y * gain + bias).to(x.dtype)
