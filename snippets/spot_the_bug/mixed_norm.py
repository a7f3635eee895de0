import torch
from torch import Tensor, nn


class MixedNorm(nn.Module):
    """RMSNorm with a float32 weight in a bfloat16 model. x is (..., d)."""

    def __init__(self, d: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d, dtype=torch.float32))
        self.eps = eps

    def _norm(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * self._norm(x.float()).type_as(x)
