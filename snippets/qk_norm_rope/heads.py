from math import gcd

from torch import Tensor


def head_layout(x: Tensor) -> tuple[int, int, int, int]:
    """(heads, token_stride, head_stride, align), as row_layout has them.

    x is (batch, time, heads, width). ValueError when tokens of all batches
    do not have one stride, or when the features of a head are not next to
    each other.
    """
    batch, time, heads, width = x.shape
    over_batch, token_stride, head_stride, last = x.stride()
    if batch > 1 and time > 1 and over_batch != time * token_stride:
        raise ValueError(
            "tokens are not evenly spaced: call x.contiguous() first"
        )
    if width > 1 and last != 1:
        raise ValueError(
            "features are not contiguous: call x.contiguous() first"
        )
    strides = over_batch if time == 1 else token_stride, head_stride
    return heads, *strides, gcd(16, *strides)
