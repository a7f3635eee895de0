"""rms_norm_kernel in Triton's interpreter, against float64, row by row."""

import pytest
import torch

from snippets.coding.triton_rms_norm import rms_norm_kernel
from tests.snippets.coding.cases import by_rows, close, gains, numbers
from tests.wrong import rejects

JUDGED = rms_norm_kernel
# The interpreter cuts float32 to bfloat16, where a GPU rounds: one unit, not half.
ROUNDING = {torch.float16: 2**-11, torch.bfloat16: 2**-7, torch.float32: 1e-5}


def _wanted(x, gain, eps):
    x, gain = x.double(), gain.double()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain


def _compare(kernel, x, eps, rtol, case):
    width = x.shape[-1]
    columns, gain = 2 ** (width - 1).bit_length(), gains(width, dtype=x.dtype)
    y = by_rows(kernel, x, [gain], eps, columns, case)
    close("y", y, _wanted(x, gain, eps), rtol * 1.05, case=case, rowwise=False)


def check_widths(kernel):
    for shape in ((1, 1), (3, 2), (2, 7), (4, 31), (2, 64), (1, 300)):
        x, case = numbers(shape, offset=1.0).float(), f"x {shape} in float32"
        _compare(kernel, x, 1e-3, 1e-5, case)


def check_dtypes(kernel):
    for dtype, rtol in ROUNDING.items():
        x, case = (
            numbers((3, 33), scale=300.0, dtype=dtype),
            f"x of size 300 in {dtype}",
        )
        _compare(kernel, x, 1e-6, rtol, case)


def check_faint_and_zero_rows(kernel):
    x = numbers((4, 9), scale=1e-3, dtype=torch.float32)
    x[1] = 0
    for eps in (1e-5, 1e-6):
        case = f"x of size 1e-3 and a row of zeros, eps {eps}"
        _compare(kernel, x, eps, 1e-5, case)


CHECKS = [check_dtypes, check_widths, check_faint_and_zero_rows]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(rms_norm_kernel, CHECKS)
