from torch import Tensor, nn

from snippets.deepnorm.block import (
    Attention,
    DeepNorm,
    FeedForward,
    initialize,
)
from snippets.deepnorm.coefficients import Coefficients, coefficients


class PreNorm(nn.Module):
    """x + branch(LayerNorm(x)); x is (..., d)."""

    def __init__(self, branch: nn.Module, d: int) -> None:
        super().__init__()
        self.branch, self.norm = branch, nn.LayerNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(self.norm(x))


def stack(placement: str, layers: int, d: int) -> nn.Sequential:
    """A decoder's layers, float64, two sublayers each, freshly drawn.

    placement is "Post-Norm", "Pre-Norm" (with its final norm) or
    "DeepNorm".
    """
    alpha, beta = Coefficients(1.0, 1.0)
    if placement == "DeepNorm":
        alpha, beta = coefficients(decoder_layers=layers)["decoder"]
    blocks = nn.Sequential()
    for _ in range(layers):
        for branch in (Attention(d, heads=2), FeedForward(d)):
            initialize(branch, beta)
            if placement == "Pre-Norm":
                blocks.append(PreNorm(branch, d))
            else:
                blocks.append(DeepNorm(branch, d, alpha))
    if placement == "Pre-Norm":
        blocks.append(nn.LayerNorm(d))
    return blocks.double()
