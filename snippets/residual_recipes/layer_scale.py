import torch
from torch import Tensor, nn


def initial_scale(layers: int) -> float:
    """Where LayerScale starts. Touvron et al. (2021)."""
    return 0.1 if layers <= 18 else 1e-5 if layers <= 24 else 1e-6


class LayerScale(nn.Module):
    """x + scale * branch(norm(x)), scale learned, one per feature.

    x is (..., d); norm keeps its shape. Touvron et al. (2021).
    """

    def __init__(
        self, branch: nn.Module, norm: nn.Module, d: int, start: float
    ) -> None:
        super().__init__()
        self.branch, self.norm = branch, norm
        self.scale = nn.Parameter(torch.full((d,), start))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.scale * self.branch(self.norm(x))
