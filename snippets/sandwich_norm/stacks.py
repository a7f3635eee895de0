import torch
from torch import Tensor, nn

from snippets.deepnorm.block import FeedForward, initialize
from snippets.rms_norm.reference import RMSNorm
from snippets.sandwich_norm.attention import CausalAttention


class PreNorm(nn.Module):
    """x + branch(pre(x)); x is (..., d)."""

    def __init__(self, branch: nn.Module, d: int) -> None:
        super().__init__()
        self.pre, self.branch = RMSNorm(d), branch

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(self.pre(x))


def stack(
    placement: type[nn.Module],
    layers: int,
    d: int = 64,
    qk_norm: bool = False,
    seed: int = 0,
) -> nn.ModuleList:
    """2 * layers sublayers, float64, drawn by Xavier normal with gain 1."""
    torch.manual_seed(seed)
    blocks = nn.ModuleList()
    for _ in range(layers):
        for branch in (CausalAttention(d, 4, qk_norm), FeedForward(d)):
            initialize(branch, 1.0)
            blocks.append(placement(branch, d))
    return blocks.double()
