# --8<-- [start:soft_cap]
import torch
from torch import Tensor


def soft_cap(z: Tensor, cap: float) -> Tensor:
    """cap * tanh(z / cap): close to z where |z| is small, never above cap.

    z has any shape and floating dtype, cap is positive. The arithmetic is
    float32 (float64 for float64 input); the result has z's dtype. Gemma 2
    (2024).
    """
    wide = z.to(torch.promote_types(z.dtype, torch.float32))
    return (cap * torch.tanh(wide / cap)).to(z.dtype)


# --8<-- [end:soft_cap]


# --8<-- [start:soft_cap_backward]
def soft_cap_backward(grad_y: Tensor, z: Tensor, cap: float) -> Tensor:
    """Gradient with respect to z: grad_y * (1 - tanh(z / cap) ** 2).

    grad_y and z have the same shape; the result has z's dtype. Written as
    1 / cosh ** 2, since 1 - tanh ** 2 cancels where tanh is close to one.
    """
    wide = z.to(torch.promote_types(z.dtype, torch.float32))
    slope = torch.cosh(wide / cap).square().reciprocal()
    return (grad_y.to(wide.dtype) * slope).to(z.dtype)


# --8<-- [end:soft_cap_backward]
