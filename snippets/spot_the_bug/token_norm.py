import torch
from torch import Tensor, nn


class TokenNorm(nn.Module):
    """LayerNorm of a decoder. x is (batch, time, d) in float32."""

    def __init__(self, d: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        dims = tuple(range(1, x.ndim))
        mean = x.mean(dim=dims, keepdim=True)
        var = x.var(dim=dims, keepdim=True, correction=0)
        x = (x - mean) * torch.rsqrt(var + self.eps)
        return self.weight * x + self.bias
