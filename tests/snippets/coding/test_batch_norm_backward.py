"""batch_norm_backward against autograd through torch's BatchNorm in float64."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.batch_norm_backward import batch_norm_backward
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    ONE_ROUNDING,
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

JUDGED = batch_norm_backward
NAMES = ("grad_x", "grad_gain", "grad_bias")


def _wanted(grad_y, x, gain, eps):
    grad_y, x, gain = (each.detach().double() for each in (grad_y, x, gain))
    bias = torch.zeros_like(gain).requires_grad_()
    x.requires_grad_(), gain.requires_grad_()
    y = F.batch_norm(x, None, None, gain, bias, True, 0.1, eps)
    return torch.autograd.grad(y, (x, gain, bias), grad_y)


def _compare(backward, grad_y, x, gain, eps, rtol, case):
    with unchanged(case, grad_y, x, gain):
        found = backward(grad_y, x, gain, eps)
    results(found, " ".join(NAMES), case)
    kinds = x.dtype, gain.dtype, gain.dtype
    wanted = _wanted(grad_y, x, gain, eps)
    for name, a, b, dtype in zip(NAMES, found, wanted, kinds, strict=True):
        close(name, a, b, rtol, case=case)
        has_dtype(name, a, dtype, case)


@by_hand
def check_shapes(backward):
    for shape in ((2, 3), (3, 5), (33, 4), (7, 1), (5, 17)):
        x = numbers(shape, offset=2.0)
        gain, grad_y = gains(shape[-1]), numbers(shape, seed=1, offset=1.0)
        rtol = 1e-6 if len(x) == 2 else 1e-9  # two samples: +-1, all cancels
        case = f"x {shape} in float64, gain random"
        _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


def check_faint_samples(backward):
    x, gain, grad_y = numbers((9, 3), scale=3e-3), gains(3), numbers((9, 3), seed=1)
    for eps in (1e-5, 1e-6):
        case = f"x of size 3e-3, eps {eps}"
        _compare(backward, grad_y, x, gain, eps, 1e-9, case)


def check_large_mean(backward):
    x, gain = numbers((64, 4), dtype=torch.float32), gains(4, dtype=torch.float32)
    grad_y = numbers((64, 4), dtype=torch.float32, seed=1)
    case = "float32 samples with mean 3000"
    _compare(backward, grad_y, x + 3000, gain, 1e-5, 1e-2, case)


@in_every_dtype
def check_dtypes(backward, dtype):
    wide = torch.promote_types(dtype, torch.float32)
    x, gain = numbers((33, 5), dtype=dtype), gains(5, dtype=wide)
    grad_y = numbers((33, 5), dtype=dtype, seed=1)
    rtol, case = 1.5 * ONE_ROUNDING[dtype], f"x (33, 5) in {dtype}"
    _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


def check_many_samples(backward):
    x, gain = numbers((2048, 5), dtype=torch.bfloat16), gains(5, dtype=torch.float32)
    grad_y = numbers((2048, 5), seed=1).abs().to(torch.bfloat16)
    rtol, case = 1.5 * ONE_ROUNDING[torch.bfloat16], "2048 samples in bfloat16"
    _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


check_views = on_views(numbers((5, 4), seed=1), numbers((5, 4)), gains(4), 1e-3)

CHECKS = [
    check_dtypes,
    check_shapes,
    check_faint_samples,
    check_large_mean,
    check_many_samples,
    check_views,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(batch_norm_backward, CHECKS)
