from torch import Tensor


def group_norm(
    x: Tensor, groups: int, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """GroupNorm: one mean and one variance for each sample and group.

    x is (n, channels, ...) with any number of further dimensions; groups
    divides channels; gain and bias are (channels,) in x's dtype. Computes in
    float32 or wider and rounds once. The result has x's shape and dtype.
    """
    raise NotImplementedError
