from torch import Tensor


def centre(x: Tensor) -> Tensor:
    """Subtract each vector's own mean: project onto the plane sum = 0.

    x is (..., d); the same as multiplying by P = I - 11ᵀ/d.
    """
    return x - x.mean(dim=-1, keepdim=True)


def mean_share(x: Tensor) -> Tensor:
    """Share of each vector's energy on the all-ones direction, in [0, 1].

    x is (..., d), not zero; the result is (...). A random direction has
    1/d on average.
    """
    return x.mean(dim=-1).square() / x.square().mean(dim=-1)
