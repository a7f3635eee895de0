"""group_norm against torch's GroupNorm in float64."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.group_norm import group_norm
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
    unchanged,
)
from tests.wrong import rejects

JUDGED = group_norm
CASES = (
    ((2, 6), 3),
    ((3, 6, 5), 2),
    ((2, 6, 3, 5), 3),
    ((1, 4, 2, 3, 2), 1),
    ((2, 4, 7), 4),
)


def _inputs(shape, dtype=torch.float64):
    gain, bias = gains(shape[1], dtype=dtype), gains(shape[1], seed=1, dtype=dtype)
    loud = 2.0 ** torch.arange(shape[1]).reshape(-1, *[1] * (len(shape) - 2))
    return (numbers(shape, offset=1.0) * loud).to(dtype), gain, bias


def _wanted(x, groups, gain, bias, eps):
    return F.group_norm(x.double(), groups, gain.double(), bias.double(), eps)


@by_hand
def check_shapes(group_norm):
    for shape, groups in CASES:
        x, gain, bias = _inputs(shape)
        y = group_norm(x, groups, gain, bias, 1e-3)
        case = f"x {shape} with {groups} groups, loudness doubling by channel"
        close("y", y, _wanted(x, groups, gain, bias, 1e-3), case=case)


@in_every_dtype
def check_dtypes(group_norm, dtype):
    x, gain, bias = _inputs((2, 6, 5), dtype)
    x = x * 10
    with unchanged(f"x in {dtype}", x, gain, bias):
        y = group_norm(x, 3, gain, bias, 1e-5)
    case = f"x of size up to 300 in {dtype}"
    has_dtype("y", y, dtype, case)
    wanted = _wanted(x, 3, gain, bias, 1e-5)
    close("y", y, wanted, ONE_ROUNDING[dtype], case=case)


def check_large_mean(group_norm):
    x, gain, bias = _inputs((2, 6, 40))
    x = (numbers((2, 6, 40)) + 3000).float()
    y = group_norm(x, 3, gain.float(), bias.float(), 1e-5)
    wanted = _wanted(x, 3, gain.float(), bias.float(), 1e-5)
    close("y", y, wanted, 1e-2, case="float32 values with mean 3000")


def check_gradients(group_norm):
    x, gain, bias = (each.requires_grad_() for each in _inputs((2, 6, 5)))
    grad_y, inputs = numbers((2, 6, 5), seed=1), (x, gain, bias)
    case = "gradients by autograd of x, gain and bias"
    ours = gradients(group_norm(x, 3, gain, bias, 1e-5), inputs, grad_y, case)
    exact = torch.autograd.grad(_wanted(x, 3, gain, bias, 1e-5), inputs, grad_y)
    for name, a, b in zip(("x", "gain", "bias"), ours, exact, strict=True):
        close(f"gradient of {name}", a, b, case=case)


check_views = on_views(numbers((3, 6, 5)), 2, gains(6), gains(6, seed=1), 1e-3)

CHECKS = [check_dtypes, check_shapes, check_large_mean, check_gradients, check_views]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(group_norm, CHECKS)
