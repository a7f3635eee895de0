# --8<-- [start:ZeroCentredRMSNorm]
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snippets.rms_norm.reference import rms_norm


class ZeroCentredRMSNorm(nn.Module):
    """RMSNorm whose stored weight is its gain minus one, zero at the start.

    x is (..., d) in any floating dtype. The sum 1 + weight is float32 (float64
    for float64 input); one rounding to x's dtype, at the end.
    """

    def __init__(self, d: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        return rms_norm(x, 1 + self.weight.to(wide), self.eps)


# --8<-- [end:ZeroCentredRMSNorm]


# --8<-- [start:GatedRMSNorm]
class GatedRMSNorm(nn.Module):
    """RMSNorm of x, times a plain weight, times SiLU of a gate like x."""

    def __init__(self, d: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        y = self.weight * rms_norm(x, eps=self.eps)  # rounded before the weight
        return (y * F.silu(gate.to(wide))).to(x.dtype)


# --8<-- [end:GatedRMSNorm]
