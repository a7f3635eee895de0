"""rms_norm against its definition in float64, in every dtype, rounded once."""

import pytest
import torch

from snippets.coding.rms_norm import rms_norm
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    ONE_ROUNDING,
    SHAPES,
    by_hand,
    close,
    gains,
    gradients,
    has_dtype,
    in_every_dtype,
    numbers,
    unchanged,
)
from tests.wrong import rejects

JUDGED = rms_norm


def _wanted(x, gain, eps):
    x, gain = x.double(), gain.double()
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return gain * x * x.shape[-1] ** 0.5 / (length**2 + x.shape[-1] * eps).sqrt()


@by_hand
def check_shapes(rms_norm):
    for shape in SHAPES:
        x, gain = numbers(shape, offset=1.0), gains(shape[-1])
        case = f"x {shape} in float64, gain random, eps 1e-3"
        close("y", rms_norm(x, gain, 1e-3), _wanted(x, gain, 1e-3), case=case)


def check_faint_and_zero_rows(rms_norm):
    x, gain = numbers((4, 9), scale=1e-4), gains(9)
    x[1] = 0
    for eps in (1e-5, 1e-6):
        case = f"x of size 1e-4 and a row of zeros, eps {eps}"
        close("y", rms_norm(x, gain, eps), _wanted(x, gain, eps), case=case)


@in_every_dtype
def check_dtypes(rms_norm, dtype):
    for wide in (False, True):
        x = numbers((3, 33), scale=300.0, dtype=dtype)
        gain_dtype = torch.promote_types(dtype, torch.float32) if wide else dtype
        gain = gains(33, dtype=gain_dtype)
        case = f"x of size 300 in {dtype}, gain in {gain_dtype}"
        with unchanged(case, x, gain):
            y = rms_norm(x, gain, 1e-6)
        has_dtype("y", y, dtype, case)
        rtol = ONE_ROUNDING[dtype]
        close("y", y, _wanted(x, gain, 1e-6), rtol, case=case, rowwise=False)


def check_gradients(rms_norm):
    x, gain = numbers((2, 3, 7)).requires_grad_(), gains(7).requires_grad_()
    grad_y, case = numbers((2, 3, 7), seed=1), "gradients by autograd of x and gain"
    ours = gradients(rms_norm(x, gain, 1e-6), (x, gain), grad_y, case)
    exact = torch.autograd.grad(_wanted(x, gain, 1e-6), (x, gain), grad_y)
    for name, a, b in zip(("x", "gain"), ours, exact, strict=True):
        close(f"gradient of {name}", a, b, case=case)


check_views = on_views(numbers((3, 4, 7)), gains(7), 1e-3)

CHECKS = [
    check_dtypes,
    check_shapes,
    check_faint_and_zero_rows,
    check_gradients,
    check_views,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(rms_norm, CHECKS)
