"""layer_norm_kernel in Triton's interpreter, against float64, row by row."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.triton_layer_norm import layer_norm_kernel
from tests.snippets.coding.cases import by_rows, close, gains, numbers
from tests.snippets.coding.kernels import altered

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


CHANGES = {
    "first_piece_only": [
        ("tl.range(0, WIDTH, COLUMNS)", "tl.range(0, COLUMNS, COLUMNS)")
    ],
    "last_piece_dropped": [
        (
            "tl.range(0, WIDTH, COLUMNS)",
            "tl.range(0, WIDTH // COLUMNS * COLUMNS, COLUMNS)",
        )
    ],
    "padding_counted_in_the_variance": [
        (
            "tl.where(inside, value.to(tl.float32) - mean, 0.0)",
            "value.to(tl.float32) - mean",
        )
    ],
    "two_moments": [
        ("tl.where(inside, value.to(tl.float32) - mean, 0.0)", "value.to(tl.float32)"),
        (
            "tl.sum(squares, axis=0) / WIDTH",
            "tl.sum(squares, axis=0) / WIDTH - mean * mean",
        ),
    ],
    "sum_overwritten_by_each_piece": [("total += ", "total = ")],
    "divides_by_the_piece": [
        ("tl.sum(total, axis=0) / WIDTH", "tl.sum(total, axis=0) / COLUMNS")
    ],
    "unbiased_variance": [
        ("tl.sum(squares, axis=0) / WIDTH", "tl.sum(squares, axis=0) / (WIDTH - 1)")
    ],
    "eps_outside_the_root": [
        (
            "tl.rsqrt(tl.sum(squares, axis=0) / WIDTH + eps)",
            "1 / (tl.sqrt(tl.sum(squares, axis=0) / WIDTH) + eps)",
        )
    ],
    "bias_before_the_gain": [
        (
            "unit * weight.to(tl.float32) + shift.to(tl.float32)",
            "(unit + shift.to(tl.float32)) * weight.to(tl.float32)",
        )
    ],
    "rows_taken_as_packed": [("tl.program_id(0) * stride", "tl.program_id(0) * WIDTH")],
    "writes_beyond_the_row": [("result, mask=inside)", "result)")],
    "one_gain_for_every_piece": [("gain + first + tile", "gain + tile")],
    "sums_in_the_dtype_of_x": [
        ("total += value.to(tl.float32)", "total += (value + value).to(tl.float32) / 2")
    ],
}
VARIANTS = altered(layer_norm_kernel, CHANGES)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
