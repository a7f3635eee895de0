import torch
from torch import Tensor, nn


class LayerScale(nn.Module):
    """x + scale * body(norm(x)): one number a feature, no statistics."""

    def __init__(
        self, d: int, norm: nn.Module, body: nn.Module, start: float = 1e-4
    ) -> None:
        super().__init__()
        self.norm, self.body = norm, body
        self.scale = nn.Parameter(torch.full((d,), start))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.scale * self.body(self.norm(x))
