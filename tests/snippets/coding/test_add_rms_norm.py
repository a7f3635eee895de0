"""add_rms_norm: the sum bit for bit, and its norm to one rounding."""

import pytest
import torch

from snippets.coding.add_rms_norm import add_rms_norm
from tests.snippets.coding.cases import (
    ONE_ROUNDING,
    close,
    gains,
    gradients,
    has_dtype,
    in_every_dtype,
    numbers,
    results,
    unchanged,
)

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


CHECKS = [check_both, check_faint_rows, check_gradients]


def _norm(h, gain, eps):
    return h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps) * gain


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def stream_before_the_add(x, residual, gain, eps=1e-6):
    y, _ = add_rms_norm(x, residual, gain, eps)
    return y, residual.clone()


def stream_is_the_normalized(x, residual, gain, eps=1e-6):
    y, _ = add_rms_norm(x, residual, gain, eps)
    return y, y


def results_swapped(x, residual, gain, eps=1e-6):
    return add_rms_norm(x, residual, gain, eps)[::-1]


def normalizes_only_x(x, residual, gain, eps=1e-6):
    y = _norm(_wide(x), gain, eps).to(x.dtype)
    return y, x + residual


def normalizes_the_unrounded_sum(x, residual, gain, eps=1e-6):
    wide = _wide(x) + _wide(residual)
    return _norm(wide, gain, eps).to(x.dtype), wide.to(x.dtype)


def rounds_before_the_gain(x, residual, gain, eps=1e-6):
    stream = x + residual
    return _norm(_wide(stream), 1.0, eps).to(x.dtype) * gain, stream


def always_float32(x, residual, gain, eps=1e-6):
    stream = x + residual
    return _norm(stream.float(), gain.float(), eps).to(x.dtype), stream


def stream_stays_wide(x, residual, gain, eps=1e-6):
    wide = _wide(x) + _wide(residual)
    return _norm(wide, gain, eps).to(x.dtype), wide


def adds_into_the_residual(x, residual, gain, eps=1e-6):
    residual.data.add_(x.data)
    return _norm(_wide(residual), gain, eps).to(x.dtype), residual


def add_after_the_norm(x, residual, gain, eps=1e-6):
    y = _norm(_wide(x), gain, eps).to(x.dtype)
    return y, residual + y


def stream_detached(x, residual, gain, eps=1e-6):
    y, stream = add_rms_norm(x, residual, gain, eps)
    return y, stream.detach()


VARIANTS = [
    stream_before_the_add,
    stream_is_the_normalized,
    results_swapped,
    normalizes_only_x,
    normalizes_the_unrounded_sum,
    rounds_before_the_gain,
    always_float32,
    stream_stays_wide,
    adds_into_the_residual,
    add_after_the_norm,
    stream_detached,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
