"""add_rms_norm: the sum bit for bit, and its norm to one rounding."""

import pytest
import torch

from snippets.coding.add_rms_norm import add_rms_norm
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    ONE_ROUNDING,
    by_hand,
    close,
    gains,
    gradients,
    has_dtype,
    in_every_dtype,
    numbers,
    results,
    unchanged,
)
from tests.wrong import rejects

JUDGED = add_rms_norm


def _inputs(shape, dtype):
    x = numbers(shape, dtype=dtype)
    residual = numbers(shape, dtype=dtype, offset=3.0, seed=1)
    return x, residual, gains(shape[-1], dtype=dtype)


def _apart(x, residual, gain, eps):
    """The stream in its dtype, and the norm of that in float64."""
    stream = torch.add(residual, x)
    wide = stream.double()
    length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
    root = (length**2 / x.shape[-1] + eps).sqrt()
    return gain.double() * wide / root, stream


@in_every_dtype
def check_both(add_rms_norm, dtype):
    for shape in ((7,), (2, 3, 64), (5, 1, 2, 33)):
        inputs, case = _inputs(shape, dtype), f"{shape} in {dtype}"
        with unchanged(case, *inputs):
            found = add_rms_norm(*inputs, 1e-5)
        y, stream = results(found, "y stream", case)
        wanted, total = _apart(*inputs, 1e-5)
        has_dtype("y", y, dtype, case)
        has_dtype("stream", stream, dtype, case)
        close("stream", stream, total, 0.0, case=case)
        close("y", y, wanted, ONE_ROUNDING[dtype], case=case, rowwise=False)


@by_hand
def check_faint_rows(add_rms_norm):
    x, residual, gain = (1e-4 * each for each in _inputs((3, 9), torch.float64))
    case, names = "float64 rows of size 1e-4, eps 1e-6", "y stream"
    found = results(add_rms_norm(x, residual, gain, 1e-6), names, case)
    wanted = _apart(x, residual, gain, 1e-6)
    for name, a, b in zip(names.split(), found, wanted, strict=True):
        close(name, a, b, case=case)


def check_gradients(add_rms_norm):
    inputs = [each.requires_grad_() for each in _inputs((2, 5, 7), torch.float64)]
    case = "gradients by autograd in float64, through both results"
    g, h = numbers((2, 5, 7), seed=2), numbers((2, 5, 7), seed=3)
    y, stream = results(add_rms_norm(*inputs, 1e-6), "y stream", case)
    a, b = _apart(*inputs, 1e-6)
    ours = gradients((y * g + stream * h).sum(), inputs, None, case)
    exact = torch.autograd.grad((a * g + b * h).sum(), inputs)
    for name, one, two in zip(("x", "residual", "gain"), ours, exact, strict=True):
        close(f"gradient of {name}", one, two, case=case)


check_views = on_views(*_inputs((3, 4, 7), torch.float64), 1e-3)

CHECKS = [check_both, check_faint_rows, check_gradients, check_views]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(add_rms_norm, CHECKS)
