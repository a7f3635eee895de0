from itertools import pairwise
from math import gcd, prod

from torch import Tensor


def row_layout(x: Tensor) -> tuple[int, int, int, int, int]:
    """How a kernel finds the rows of x, (..., width), without a copy.

    The result is (rows, heads, token_stride, head_stride, align), in
    elements: row i starts at i // heads * token_stride + i % heads *
    head_stride, a multiple of align. That covers a contiguous tensor, rows
    with padding between them and the heads of queries in a packed
    projection. ValueError for any other layout.
    """
    rows, heads, *strides = even_rows(x)
    return rows, heads, *strides, gcd(16, *strides)


def even_rows(x: Tensor) -> tuple[int, int, int, int]:
    """rows, heads, token_stride and head_stride of row_layout."""
    *sizes, width = x.shape
    *strides, last = x.stride()
    dims = [(n, s) for n, s in zip(sizes, strides, strict=True) if n != 1]
    rows = prod(sizes)
    if rows and width > 1 and last != 1:
        dims = []
    elif rows < 2:
        return rows, 1, 0, 0
    elif evenly_spaced(dims):
        return rows, 1, dims[-1][1], 0
    elif evenly_spaced(dims[:-1]):
        heads, head_stride = dims[-1]
        return rows, heads, dims[-2][1], head_stride
    raise ValueError(
        f"rows of shape {tuple(x.shape)} with strides {x.stride()} are not "
        "evenly spaced: call x.contiguous() first"
    )


def evenly_spaced(dims: list[tuple[int, int]]) -> bool:
    """Whether dimensions of (size, stride) are like one with one stride."""
    return all(outer == n * inner for (_, outer), (n, inner) in pairwise(dims))
