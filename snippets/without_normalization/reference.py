# --8<-- [start:dynamic_tanh]
import torch
from torch import Tensor, nn


def dynamic_tanh(
    x: Tensor, alpha: Tensor, gain: Tensor, bias: Tensor
) -> Tensor:
    """DyT: gain * tanh(alpha * x) + bias, for each number on its own.

    x is (..., d) in any floating dtype and is not modified; alpha is one
    number, gain and bias are (d,). The arithmetic is float32 (float64 for
    float64 input); the result has x's shape and dtype. Zhu et al. (2025).
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    alpha, gain, bias = (each.to(wide.dtype) for each in (alpha, gain, bias))
    return (gain * torch.tanh(alpha * wide) + bias).to(x.dtype)


# --8<-- [end:dynamic_tanh]


# --8<-- [start:DynamicTanh]
class DynamicTanh(nn.Module):
    """dynamic_tanh over the last dimension, of size d, with its parameters."""

    def __init__(self, d: int, alpha: float = 0.5) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(float(alpha)))  # (1)!
        self.gain = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor) -> Tensor:
        return dynamic_tanh(x, self.alpha, self.gain, self.bias)


# --8<-- [end:DynamicTanh]
