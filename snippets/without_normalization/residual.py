# --8<-- [start:ScaledResidual]
import torch
from torch import Tensor, nn


class ScaledResidual(nn.Module):
    """x + alpha * body(x), with one learned number alpha per branch.

    alpha = 0 at the start is ReZero (Bachlechner et al., 2020) and SkipInit
    (De & Smith, 2020); no norm anywhere.
    """

    def __init__(self, body: nn.Module, alpha: float = 0.0) -> None:
        super().__init__()
        self.body = body
        self.alpha = nn.Parameter(torch.tensor(float(alpha)))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.alpha * self.body(x)


# --8<-- [end:ScaledResidual]


# --8<-- [start:fixup]
@torch.no_grad()
def fixup(body: nn.Sequential, branches: int) -> None:
    """Rescale, in place, the linear layers of one residual branch.

    The last layer starts at zero; the other m - 1 are multiplied by
    branches ** (-1 / (2 m - 2)). Zhang et al. (2019), rules 1 and 2.
    """
    *others, last = (layer for layer in body if isinstance(layer, nn.Linear))
    m = len(others) + 1
    for layer in others:
        layer.weight.mul_(branches ** (-1 / (2 * m - 2)))
    last.weight.zero_()


# --8<-- [end:fixup]
