from torch import Tensor, nn


class DeepResidual(nn.Module):
    """A residual connection of a DeepNorm decoder.

    x is (batch, time, d); the model has `layers` layers of two sublayers.
    The weights of the branch are initialized elsewhere.
    """

    def __init__(self, branch: nn.Module, d: int, layers: int) -> None:
        super().__init__()
        self.branch = branch
        self.norm = nn.LayerNorm(d)
        self.alpha = (2 * layers) ** 0.25

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.alpha * self.branch(x))
