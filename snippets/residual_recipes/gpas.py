import torch
from torch import Tensor, nn
from torch.nn import functional as F


class GPAS(nn.Module):
    """x - SiLU(gate) * stop(x): scales values, passes gradients whole.

    x is (..., d); gate is one learned number and starts at 0, where the
    module is the identity. Chen et al. (2025).
    """

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return x - F.silu(self.gate) * x.detach()


class PreNormGPAS(nn.Module):
    """gpas(x + branch(norm(x))): after the sum, on the stream."""

    def __init__(self, branch: nn.Module, norm: nn.Module, gpas: GPAS) -> None:
        super().__init__()
        self.branch, self.norm, self.gpas = branch, norm, gpas

    def forward(self, x: Tensor) -> Tensor:
        return self.gpas(x + self.branch(self.norm(x)))
