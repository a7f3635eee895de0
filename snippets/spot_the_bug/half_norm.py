import torch
from torch import Tensor, nn


class HalfNorm(nn.Module):
    """RMSNorm for float16 and bfloat16 inference. x is (..., d)."""

    def __init__(self, d: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        dtype = x.dtype
        mean_square = x.pow(2).to(torch.float32).mean(-1, keepdim=True)
        x = x.to(torch.float32) * torch.rsqrt(mean_square + self.eps)
        return (self.weight * x).to(dtype)
