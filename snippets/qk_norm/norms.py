import torch
from torch import Tensor


def l2_norm(x: Tensor, eps: float = 1e-6) -> Tensor:
    """Divide each vector by its length: x is (..., width), without a gain.

    The arithmetic is float32 (float64 for float64 input), the result has
    x's dtype. Henry et al. (2020), with eps inside the root.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    square = wide.square().sum(dim=-1, keepdim=True)
    return (wide * torch.rsqrt(square + eps)).to(x.dtype)
