import torch
from torch import Tensor, nn


class AffineNorm(nn.Module):
    """The same function as nn.LayerNorm(d). x is (..., d) in float32."""

    def __init__(self, d: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        var = x.var(-1, keepdim=True, correction=0)
        x = (x - mean) / (var.sqrt() + self.eps)
        return self.weight * x + self.bias
