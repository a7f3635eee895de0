import torch
from torch import Tensor


def soft_cap(z: Tensor, cap: float) -> tuple[Tensor, Tensor]:
    """z has any shape. Gemma 2 (2024)."""
    ratio = z.to(torch.promote_types(z.dtype, torch.float32)) / cap
    y = cap * torch.tanh(ratio)
    slope = torch.cosh(ratio).square().reciprocal()  # 1 - tanh² cancels
    return y.to(z.dtype), slope.to(z.dtype)
