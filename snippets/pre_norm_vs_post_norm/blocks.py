# --8<-- [start:PostNormBlock]
from torch import Tensor, nn


class PostNormBlock(nn.Module):
    """norm(x + sublayer(x)): the norm is on the residual stream.

    sublayer and norm map (..., d) to (..., d); the result has x's shape.
    Vaswani et al. (2017), section 3.1.
    """

    def __init__(self, sublayer: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        self.sublayer, self.norm = sublayer, norm

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.sublayer(x))


# --8<-- [end:PostNormBlock]


# --8<-- [start:PreNormBlock]
class PreNormBlock(nn.Module):
    """x + sublayer(norm(x)): the norm is inside the branch.

    sublayer and norm map (..., d) to (..., d); the result has x's shape.
    The stream leaves the last block unnormalized: a final norm follows.
    """

    def __init__(self, sublayer: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        self.sublayer, self.norm = sublayer, norm

    def forward(self, x: Tensor) -> Tensor:
        return x + self.sublayer(self.norm(x))


# --8<-- [end:PreNormBlock]
