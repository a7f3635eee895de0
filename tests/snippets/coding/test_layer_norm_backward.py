"""layer_norm_backward against autograd through torch's LayerNorm in float64."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.layer_norm_backward import layer_norm_backward
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    ONE_ROUNDING,
    SHAPES,
    by_hand,
    close,
    gains,
    has_dtype,
    in_every_dtype,
    numbers,
    results,
    unchanged,
)
from tests.wrong import rejects

JUDGED = layer_norm_backward
NAMES = ("grad_x", "grad_gain", "grad_bias")


def _wanted(grad_y, x, gain, eps):
    grad_y, x, gain = (each.detach().double() for each in (grad_y, x, gain))
    bias = torch.zeros_like(gain).requires_grad_()
    x.requires_grad_(), gain.requires_grad_()
    y = F.layer_norm(x, x.shape[-1:], gain, bias, eps)
    return torch.autograd.grad(y, (x, gain, bias), grad_y)


def _compare(backward, grad_y, x, gain, eps, rtol, case):
    with unchanged(case, grad_y, x, gain):
        found = backward(grad_y, x, gain, eps)
    results(found, " ".join(NAMES), case)
    for name, a, b in zip(NAMES, found, _wanted(grad_y, x, gain, eps), strict=True):
        close(name, a, b, rtol, case=case)
        has_dtype(name, a, x.dtype, case)


@by_hand
def check_shapes(backward):
    for shape in SHAPES:
        x = numbers(shape, offset=2.0)
        gain, grad_y = gains(shape[-1]), numbers(shape, seed=1, offset=1.0)
        rtol = 1e-6 if shape[-1] == 2 else 1e-9  # two features: ±1, all cancels
        case = f"x {shape} in float64, gain random"
        _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


def check_faint_rows(backward):
    x, gain, grad_y = numbers((3, 9), scale=3e-3), gains(9), numbers((3, 9), seed=1)
    for eps in (1e-5, 1e-6):
        case = f"x of size 3e-3, eps {eps}"
        _compare(backward, grad_y, x, gain, eps, 1e-9, case)


def check_large_mean(backward):
    x, gain = numbers((4, 64), dtype=torch.float32), gains(64, dtype=torch.float32)
    grad_y = numbers((4, 64), dtype=torch.float32, seed=1)
    case = "float32 rows with mean 3000"
    _compare(backward, grad_y, x + 3000, gain, 1e-5, 1e-2, case)


@in_every_dtype
def check_dtypes(backward, dtype):
    x, gain = numbers((2, 5, 33), dtype=dtype), gains(33, dtype=dtype)
    grad_y = numbers((2, 5, 33), dtype=dtype, seed=1)
    rtol, case = 1.5 * ONE_ROUNDING[dtype], f"x (2, 5, 33) in {dtype}"
    _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


def check_many_tokens(backward):
    x = numbers((2048, 5), dtype=torch.bfloat16)
    gain = gains(5, dtype=torch.bfloat16)
    grad_y = numbers((2048, 5), seed=1).abs().to(torch.bfloat16)
    rtol, case = 1.5 * ONE_ROUNDING[torch.bfloat16], "2048 tokens in bfloat16"
    _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


check_views = on_views(numbers((3, 4, 7), seed=1), numbers((3, 4, 7)), gains(7), 1e-3)

CHECKS = [
    check_dtypes,
    check_shapes,
    check_faint_rows,
    check_large_mean,
    check_many_tokens,
    check_views,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(layer_norm_backward, CHECKS)
