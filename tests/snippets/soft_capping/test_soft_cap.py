"""The soft cap and its gradient, against exponentials in float64."""

import math

import pytest
import torch

from snippets.soft_capping.reference import soft_cap, soft_cap_backward
from tests.same_results import on_views
from tests.wrong import suite

SHAPES = ((), (1,), (7,), (3, 31), (2, 1, 5), (2, 3, 4, 7))
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def logits(shape, scale=1.0, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed + len(shape))
    z = scale * torch.randn(shape, generator=generator, dtype=torch.float64)
    return z.to(dtype)


def reference(z, cap):
    """cap (e^2x - 1) / (e^2x + 1), written so that nothing overflows."""
    z = z.detach().double()
    below = torch.expm1(-2 * z.abs() / cap)  # e^-2x - 1
    return -cap * torch.sign(z) * below / (2 + below)


def slope(z, cap):
    e = torch.exp(-2 * z.detach().double().abs() / cap)
    return 4 * e / (1 + e) ** 2


def close(actual, expected, rtol, atol=0.0, what="value"):
    assert actual.shape == expected.shape, f"{what}: {actual.shape}"
    gap = (actual.detach().double() - expected.detach().double()).abs()
    good = gap <= atol + rtol * expected.detach().double().abs()
    assert bool(good.all()), f"{what}: off by up to {gap.max():.3g}"


def check_values(function):
    for shape in SHAPES:
        for cap in (0.5, 15.0, 50.0):
            for scale in (1e-6, 1.0, 30.0, 1e4):
                z = logits(shape, scale)
                before = z.clone()
                close(function(z, cap), reference(z, cap), 1e-12)
                assert torch.equal(z, before), "z was modified"


def check_gradients(function):
    for shape in SHAPES:
        for cap in (0.5, 15.0, 50.0):
            z = logits(shape, 40.0).requires_grad_()
            grad_y = logits(shape, seed=1)
            (ours,) = torch.autograd.grad(
                function(z, cap), z, grad_y, materialize_grads=True, allow_unused=True
            )
            expected = grad_y * slope(z, cap)
            close(ours, expected, 1e-6, 1e-13, "gradient")


def check_low_precision(function):
    for dtype in DTYPES:
        unit = torch.finfo(dtype).eps
        for cap in (15.0, 50.0):
            for scale in (1e-3, 20.0, 300.0):
                z = logits((5, 64), scale, dtype)
                y = function(z, cap)
                assert y.dtype == dtype
                loose = 4 * unit if dtype.itemsize > 2 else 0.505 * unit
                close(y, reference(z, cap), loose, 1e-7)


def check_extremes(function):
    z = torch.tensor([math.inf, -math.inf, 0.0, 1e30])
    assert function(z, 30.0).tolist() == [30.0, -30.0, 0.0, 30.0]


CHECKS = [
    check_values,
    check_gradients,
    check_low_precision,
    check_extremes,
    on_views(logits((3, 31)), 15.0),
]


test_right, test_known_wrong = suite(soft_cap, CHECKS)


# Backward --------------------------------------------------------------------


def check_backward_values(backward):
    for shape in SHAPES:
        for cap in (0.5, 15.0, 50.0):
            for scale in (1e-3, 40.0, 200.0):
                z, grad_y = logits(shape, scale), logits(shape, seed=1)
                copies = z.clone(), grad_y.clone()
                expected = grad_y * slope(z, cap)
                close(backward(grad_y, z, cap), expected, 1e-8, 1e-290)
                assert torch.equal(z, copies[0])
                assert torch.equal(grad_y, copies[1])


def check_backward_dtypes(backward):
    for dtype in DTYPES[1:]:
        z, grad_y = (logits((3, 32), s, dtype) for s in (100.0, 1.0))
        grad = backward(grad_y, z, 50.0)
        assert grad.dtype == dtype
        floor = 2 * torch.finfo(dtype).smallest_normal
        expected = grad_y.double() * slope(z, 50.0)
        close(grad, expected, max(torch.finfo(dtype).eps, 3e-5), floor)


def check_backward_far_out(backward):
    """Far above the cap: tiny, but neither zero nor NaN."""
    z = torch.tensor([900.0, 1e6, math.inf])
    grad = backward(torch.ones(3), z, 50.0)
    assert 0 < float(grad[0]) < 1e-14
    assert grad[1:].tolist() == [0.0, 0.0]


BACKWARD = [
    check_backward_values,
    check_backward_dtypes,
    check_backward_far_out,
    on_views(logits((3, 31), seed=1), logits((3, 31), 20.0), 15.0),
]


test_right_backward, test_known_wrong_backward = suite(soft_cap_backward, BACKWARD)


def test_backward_equals_autograd():
    for dtype in (torch.float64, torch.float32):
        z = logits((4, 9), 60.0, dtype).requires_grad_()
        grad_y = logits((4, 9), 1.0, dtype, seed=1)
        (expected,) = torch.autograd.grad(soft_cap(z, 50.0), z, grad_y)
        ours = soft_cap_backward(grad_y, z.detach(), 50.0)
        close(ours, expected, 0.0, 8 * torch.finfo(dtype).eps)


def test_order_is_kept_and_margins_shrink():
    z = torch.linspace(-200, 200, 801, dtype=torch.float64)
    y = soft_cap(z, 50.0)
    steps = y.diff()
    assert bool((steps > 0).all())
    assert bool((steps <= 0.5).all())
    assert float(soft_cap(torch.tensor(30.0), 30.0)) == pytest.approx(22.85, abs=5e-3)
    assert float(slope(torch.tensor(30.0), 30.0)) == pytest.approx(0.42, abs=5e-3)
