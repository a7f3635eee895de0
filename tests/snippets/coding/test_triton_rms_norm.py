"""rms_norm_kernel in Triton's interpreter, against float64, row by row."""

import pytest
import torch

from snippets.coding.triton_rms_norm import rms_norm_kernel
from tests.snippets.coding.cases import by_rows, close, gains, numbers
from tests.snippets.coding.kernels import altered

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


CHANGES = {
    "divides_by_the_block": [("axis=0) / WIDTH", "axis=0) / COLUMNS")],
    "sum_for_mean": [("axis=0) / WIDTH", "axis=0)")],
    "rows_taken_as_packed": [("row * stride", "row * WIDTH")],
    "reads_beyond_the_row": [
        (" + column, mask=inside, other=0.0)\n    value", " + column)\n    value")
    ],
    "writes_beyond_the_row": [("result, mask=inside)", "result)")],
    "one_row_for_all": [("x + row * stride", "x")],
    "squares_before_the_upcast": [
        ("    value = value.to(tl.float32)\n", ""),
        ("value * value", "(value * value).to(tl.float32)"),
    ],
    "eps_outside_the_root": [
        ("tl.rsqrt(mean_square + eps)", "(1 / (tl.sqrt(mean_square) + eps))")
    ],
    "eps_missing": [("mean_square + eps", "mean_square")],
    "gain_ignored": [(" * weight\n", "\n")],
    "rounds_before_the_gain": [
        ("(mean_square + eps) * weight", "(mean_square + eps)"),
        (
            "result = result.to(y.dtype.element_ty)",
            "half = y.dtype.element_ty\n    result = result.to(half) * weight.to(half)",
        ),
    ],
    "square_of_the_sum": [
        (
            "tl.sum(value * value, axis=0)",
            "tl.sum(value, axis=0) * tl.sum(value, axis=0)",
        )
    ],
}
VARIANTS = altered(rms_norm_kernel, CHANGES)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
