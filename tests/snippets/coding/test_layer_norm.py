"""layer_norm against torch's LayerNorm in float64, values and gradients."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.layer_norm import layer_norm
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

JUDGED = layer_norm


def _inputs(shape, **kinds):
    d, dtype = shape[-1], kinds.get("dtype", torch.float64)
    return numbers(shape, **kinds), gains(d, dtype=dtype), gains(d, seed=1, dtype=dtype)


def _wanted(x, gain, bias, eps):
    x, gain, bias = x.double(), gain.double(), bias.double()
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


@by_hand
def check_shapes(layer_norm):
    for shape in SHAPES:
        x, gain, bias = _inputs(shape, offset=2.0)
        wanted = _wanted(x, gain, bias, 1e-3)  # before an input may be changed
        y = layer_norm(x, gain, bias, 1e-3)
        case = f"x {shape} in float64, gain and bias random, eps 1e-3"
        close("y", y, wanted, case=case)


def check_faint_rows(layer_norm):
    x, gain, bias = _inputs((4, 9), scale=1e-3)
    for eps in (1e-5, 1e-6):
        wanted = _wanted(x, gain, bias, eps)
        y, case = layer_norm(x, gain, bias, eps), f"x of size 1e-3, eps {eps}"
        close("y", y, wanted, case=case)


def check_large_mean(layer_norm):
    x, gain, bias = _inputs((4, 64), offset=3000.0, dtype=torch.float32)
    wanted = _wanted(x, gain, bias, 1e-5)
    y, case = layer_norm(x, gain, bias, 1e-5), "float32 rows with mean 3000"
    close("y", y, wanted, 1e-2, case=case)


@in_every_dtype
def check_dtypes(layer_norm, dtype):
    x, gain, bias = _inputs((16, 33), scale=300.0, offset=3.0, dtype=dtype)
    with unchanged(f"x in {dtype}", x, gain, bias):
        y = layer_norm(x, gain, bias, 1e-5)
    case = f"x of size 300, off centre, in {dtype}"
    has_dtype("y", y, dtype, case)
    close("y", y, _wanted(x, gain, bias, 1e-5), ONE_ROUNDING[dtype], case=case)


def check_gradients(layer_norm):
    inputs = [each.requires_grad_() for each in _inputs((2, 3, 7), offset=1.0)]
    grad_y = numbers((2, 3, 7), seed=1)
    case = "gradients by autograd of x, gain and bias"
    ours = gradients(layer_norm(*inputs, 1e-5), inputs, grad_y, case)
    exact = torch.autograd.grad(_wanted(*inputs, 1e-5), inputs, grad_y)
    for name, a, b in zip(("x", "gain", "bias"), ours, exact, strict=True):
        close(f"gradient of {name}", a, b, case=case)


check_views = on_views(*_inputs((3, 4, 7)), 1e-3)

CHECKS = [
    check_dtypes,
    check_shapes,
    check_faint_rows,
    check_large_mean,
    check_gradients,
    check_views,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(layer_norm, CHECKS)
