"""layer_norm_kernel in Triton's interpreter, against float64, row by row."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.triton_layer_norm import layer_norm_kernel
from tests.snippets.coding.cases import by_rows, close, gains, numbers
from tests.wrong import rejects

JUDGED = layer_norm_kernel
# The interpreter cuts float32 to bfloat16, where a GPU rounds: one unit, not half.
ROUNDING = {torch.float16: 2**-11, torch.bfloat16: 2**-7, torch.float32: 1e-5}


def _wanted(x, gain, bias, eps):
    x, gain, bias = x.double(), gain.double(), bias.double()
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


def _compare(kernel, x, columns, eps, rtol, case):
    width, dtype = x.shape[-1], x.dtype
    vectors = gains(width, dtype=dtype), gains(width, dtype=dtype, seed=1)
    y = by_rows(kernel, x, vectors, eps, columns, case)
    close("y", y, _wanted(x, *vectors, eps), rtol * 1.05, case=case)


def check_widths(kernel):
    for shape, columns in (
        ((1, 1), 1),
        ((2, 7), 8),
        ((3, 7), 2),
        ((2, 8), 4),
        ((2, 31), 4),
        ((1, 300), 64),
    ):
        case = f"x {shape} in float32, pieces of {columns}"
        x = numbers(shape, offset=2.0).float()
        _compare(kernel, x, columns, 1e-3, 1e-5, case)


def check_dtypes(kernel):
    for dtype, rtol in ROUNDING.items():
        x, case = (
            numbers((3, 33), scale=300.0, dtype=dtype),
            f"x of size 300 in {dtype}",
        )
        _compare(kernel, x, 16, 1e-5, rtol, case)


def check_faint_rows(kernel):
    x = numbers((4, 9), scale=1e-3, dtype=torch.float32)
    for eps in (1e-5, 1e-6):
        _compare(kernel, x, 4, eps, 1e-4, f"x of size 1e-3, eps {eps}")


def check_large_mean(kernel):
    x = numbers((3, 61), dtype=torch.float32) + 3000
    _compare(kernel, x, 16, 1e-5, 1e-2, "float32 rows with mean 3000")


CHECKS = [check_dtypes, check_widths, check_faint_rows, check_large_mean]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(layer_norm_kernel, CHECKS)
