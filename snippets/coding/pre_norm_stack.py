from collections.abc import Callable, Sequence

from torch import Tensor

Layer = Callable[[Tensor], Tensor]


def pre_norm_stack(
    x: Tensor, branches: Sequence[Layer], norms: Sequence[Layer]
) -> Tensor:
    """x is (batch, time, d). Xiong et al. (2020), with their final norm."""
    *before, final = norms
    for branch, norm in zip(branches, before, strict=True):
        x = x + branch(norm(x))
    return final(x)
