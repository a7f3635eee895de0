import torch
from torch import Tensor, nn


class OffsetNorm(nn.Module):
    """RMSNorm for checkpoints of Gemma. x is (..., d), float32 or bfloat16."""

    def __init__(self, d: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(d))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        mean_square = wide.square().mean(-1, keepdim=True)
        wide = wide * torch.rsqrt(mean_square + self.eps)
        return (wide * (1.0 + self.weight.float())).type_as(x)
