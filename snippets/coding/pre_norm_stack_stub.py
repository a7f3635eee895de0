from collections.abc import Callable, Sequence

from torch import Tensor

Layer = Callable[[Tensor], Tensor]


def post_norm_stack(
    x: Tensor, branches: Sequence[Layer], norms: Sequence[Layer]
) -> Tensor:
    """Given: the layers of a Post-Norm Transformer, a norm each."""
    for branch, norm in zip(branches, norms, strict=True):
        x = norm(x + branch(x))
    return x


def pre_norm_stack(
    x: Tensor, branches: Sequence[Layer], norms: Sequence[Layer]
) -> Tensor:
    """The same branches in Pre-Norm, ready for the output head.

    x is (batch, time, d) and is not changed; norms holds one norm more than
    branches, in the order of their use.
    """
    raise NotImplementedError
