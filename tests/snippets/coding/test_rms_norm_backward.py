"""rms_norm_backward against autograd through the definition in float64."""

import pytest
import torch

from snippets.coding.rms_norm_backward import rms_norm_backward
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

JUDGED = rms_norm_backward


def _wanted(grad_y, x, gain, eps):
    grad_y, x, gain = (each.detach().double() for each in (grad_y, x, gain))
    x.requires_grad_(), gain.requires_grad_()
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    y = gain * x * x.shape[-1] ** 0.5 / (length**2 + x.shape[-1] * eps).sqrt()
    return torch.autograd.grad(y, (x, gain), grad_y)


def _compare(backward, grad_y, x, gain, eps, rtol, case):
    with unchanged(case, grad_y, x, gain):
        found = backward(grad_y, x, gain, eps)
    results(found, "grad_x grad_gain", case)
    wanted = _wanted(grad_y, x, gain, eps)
    for name, a, b in zip(("grad_x", "grad_gain"), found, wanted, strict=True):
        close(name, a, b, rtol, case=case)
        has_dtype(name, a, x.dtype, case)


@by_hand
def check_shapes(backward):
    for shape in SHAPES:
        x, gain, grad_y = numbers(shape), gains(shape[-1]), numbers(shape, seed=1)
        case = f"x {shape} in float64, gain random"
        _compare(backward, grad_y, x, gain, 1e-6, 1e-9, case)


def check_faint_rows(backward):
    x, gain, grad_y = numbers((3, 9), scale=1e-3), gains(9), numbers((3, 9), seed=1)
    for eps in (1e-5, 1e-6):
        case = f"x of size 1e-3, eps {eps}"
        _compare(backward, grad_y, x, gain, eps, 1e-9, case)


@in_every_dtype
def check_dtypes(backward, dtype):
    x, gain = numbers((2, 5, 33), dtype=dtype), gains(33, dtype=dtype)
    grad_y = numbers((2, 5, 33), dtype=dtype, seed=1)
    rtol, case = 1.5 * ONE_ROUNDING[dtype], f"x (2, 5, 33) in {dtype}"
    _compare(backward, grad_y, x, gain, 1e-6, rtol, case)


def check_many_tokens(backward):
    x = numbers((2048, 5), dtype=torch.bfloat16)
    gain = gains(5, dtype=torch.bfloat16)
    grad_y = (x.sign() * numbers((2048, 5), seed=1).abs()).to(torch.bfloat16)
    rtol, case = 1.5 * ONE_ROUNDING[torch.bfloat16], "2048 tokens in bfloat16"
    _compare(backward, grad_y, x, gain, 1e-6, rtol, case)


check_views = on_views(numbers((3, 4, 7), seed=1), numbers((3, 4, 7)), gains(7), 1e-3)

CHECKS = [check_dtypes, check_shapes, check_faint_rows, check_many_tokens, check_views]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(rms_norm_backward, CHECKS)
