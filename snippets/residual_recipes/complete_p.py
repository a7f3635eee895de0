# --8<-- [start:DepthScaled]
from typing import NamedTuple

from torch import Tensor, nn


class DepthScaled(nn.Module):
    """x + m ** -exponent * branch(norm(x)), m = layers / base layers.

    x is (..., d); norm keeps its shape. exponent 1 is CompleteP's, 1/2
    that of depth-muP. Dey et al. (2025).
    """

    def __init__(
        self,
        branch: nn.Module,
        norm: nn.Module,
        m: float,
        exponent: float = 1.0,
    ) -> None:
        super().__init__()
        self.branch, self.norm, self.factor = branch, norm, m**-exponent

    def forward(self, x: Tensor) -> Tensor:
        return x + self.factor * self.branch(self.norm(x))


# --8<-- [end:DepthScaled]


# --8<-- [start:adam_factors]
class AdamFactors(NamedTuple):
    matrices: float  # learning rate of the layers' matrices
    vectors: float  # learning rate of the layers' norms and biases
    decay: float  # weight decay of the layers' matrices
    epsilon: float  # Adam's epsilon
    # embedding and final norm keep the base model's learning rate


def adam_factors(
    depth: float, width: float = 1.0, exponent: float = 1.0
) -> AdamFactors:
    """Multiply the base model's settings by these in a larger model.

    depth and width say how many times deeper and wider it is. Dey et al.
    (2025), as in their code.
    """
    rate = depth ** (exponent - 1)
    return AdamFactors(
        matrices=rate / width,
        vectors=rate,
        decay=width,
        epsilon=depth**-exponent / width,
    )


# --8<-- [end:adam_factors]
