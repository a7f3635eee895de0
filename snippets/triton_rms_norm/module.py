import torch
from torch import Tensor, nn

from snippets.triton_rms_norm.operator import rms_norm


class RMSNorm(nn.Module):
    """A norm with a learned gain of shape (d,)."""

    def __init__(self, d: int, eps: float = 1e-6, norm=rms_norm) -> None:
        super().__init__()
        self.eps, self.norm = eps, norm
        self.gain = nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x, self.gain, self.eps)
