import torch
from torch import Tensor


def dynamic_erf(
    x: Tensor, alpha: Tensor, shift: Tensor, gain: Tensor, bias: Tensor
) -> Tensor:
    """Derf: gain * erf(alpha * x + shift) + bias; alpha, shift are numbers.

    x is (..., d), gain and bias are (d,). Chen et al. (2025).
    """
    return gain * torch.erf(alpha * x + shift) + bias
