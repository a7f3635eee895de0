# --8<-- [start:scale_invariant_linear]
from torch import Tensor

from snippets.why_normalize.standardize import standardize


def scale_invariant_linear(
    x: Tensor, weight: Tensor, eps: float = 0.0
) -> Tensor:
    """A norm right after a linear layer without bias.

    x is (..., d_in), weight (d_out, d_in), the result (..., d_out). With
    eps=0 it is the same for every positive multiple of weight.
    """
    return standardize(x @ weight.mT, eps=eps)


# --8<-- [end:scale_invariant_linear]


# --8<-- [start:effective_learning_rate]
def effective_learning_rate(lr: float, weight: Tensor) -> float:
    """lr / |W|²: what one SGD step does to the direction of a weight that
    is read only through a norm. |W| is the root of the sum of squares."""
    return lr / weight.square().sum().item()


# --8<-- [end:effective_learning_rate]
