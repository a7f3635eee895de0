"""What the naive path does, against what the page says that it does."""

import pytest
import torch

from snippets.low_precision.naive import rms_norm_naive
from snippets.rms_norm.reference import rms_norm
from tests.same_results import on_views
from tests.wrong import suite

HALVES = (torch.float16, torch.bfloat16)


def gain(d, dtype=torch.float16):
    return torch.linspace(0.5, 1.5, d).to(dtype)


def zeroes_the_whole_row(function):
    """One coordinate of 256 or more: that row is 0, without NaN; the others live."""
    for large in (256.0, 300.0, -65504.0):
        x = torch.linspace(-2, 3, 21).reshape(3, 7).half()
        x[1, 4] = large
        x.requires_grad_()
        weight = gain(7).requires_grad_()
        y = function(x, weight, 1e-6)
        assert (y[1] == 0).all() and not y.isnan().any()
        assert (y[[0, 2]] != 0).any(-1).all()
        y.sum().backward()
        assert (x.grad[1] == 0).all() and not x.grad.isnan().any()
        assert (x.grad[[0, 2]] != 0).any(-1).all()
        assert not weight.grad.isnan().any()


def survives_the_last_finite_square(function):
    x = torch.tensor([255.875, 0.0]).half()
    y = function(x, gain(2), 1e-6)
    assert torch.allclose(y.double(), torch.tensor([0.5, 0.0]).double() * 2**0.5, 1e-3)


def loses_small_rows(function):
    """The square and the eps are both 0 in float16: x/0, and 0/0 for a zero row."""
    y = function(torch.tensor([1e-4, -1e-4]).half(), gain(2), 1e-8)
    assert y.tolist() == [float("inf"), -float("inf")]
    assert function(torch.zeros(2).half(), gain(2), 1e-12).isnan().all()


def keeps_bfloat16_in_range(function):
    for size in (300.0, 1e4, 1e15):
        x = (size * torch.tensor([1.0, -2.0, 3.0, 0.5])).bfloat16()
        y = function(x, gain(4, torch.bfloat16), 1e-6).double()
        want = rms_norm(x.double(), gain(4, torch.bfloat16).double(), 1e-6)
        assert torch.allclose(y, want, rtol=2e-2)


def keeps_the_dtype(function):
    for dtype in HALVES:
        x = torch.ones(2, 3, dtype=dtype)
        before = x.clone()
        assert function(x, gain(3, dtype), 1e-6).dtype == dtype
        assert torch.equal(x, before)


def rounds_every_step(function):
    """The root of 17 is rounded to 4.125 before anything is divided by it."""
    x = torch.tensor([3.0, 5.0]).bfloat16()  # mean square 17, root 4.125
    y = function(x, torch.ones(2, dtype=torch.bfloat16), 0.0)
    root = torch.tensor(17.0).sqrt().bfloat16()
    assert y.tolist() == (x.double() / root.double()).bfloat16().tolist()


CHECKS = [
    zeroes_the_whole_row,
    survives_the_last_finite_square,
    loses_small_rows,
    keeps_bfloat16_in_range,
    keeps_the_dtype,
    rounds_every_step,
    on_views(torch.linspace(-2, 3, 21).reshape(3, 7), gain(7).float(), 1e-6),
]


# Here a variant is wrong when it hides what the page demonstrates.


test_naive, test_naive_rejects = suite(rms_norm_naive, CHECKS)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 13), (2, 3, 37)], ids=str)
def test_naive_is_rms_norm_where_nothing_goes_wrong(dtype, shape):
    """Values and gradients, to a few roundings of the type."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(shape, generator=generator).to(dtype).requires_grad_()
    weight = gain(shape[-1], dtype).requires_grad_()
    y = rms_norm_naive(x, weight, 1e-3)
    y.sum().backward()
    wide = x.detach().double().requires_grad_()
    wide_weight = weight.detach().double().requires_grad_()
    exact = rms_norm(wide, wide_weight, 1e-3)
    exact.sum().backward()
    step = torch.finfo(dtype).eps
    torch.testing.assert_close(y.double(), exact, rtol=4 * step, atol=step)
    size = wide.grad.norm() + 1  # of one row at d = 1 nothing but eps is left
    assert (x.grad.double() - wide.grad).norm() < 8 * step * size
    size = wide_weight.grad.norm()
    assert (weight.grad.double() - wide_weight.grad).norm() < 8 * step * size


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_naive_is_less_accurate(dtype):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(128, 257, generator=generator).to(dtype)
    weight = gain(257, dtype)
    exact = rms_norm(x.double(), weight.double(), 1e-6)
    errors = [
        (method(x, weight, 1e-6).double() - exact).norm()
        for method in (rms_norm_naive, rms_norm)
    ]
    assert errors[0] > 1.5 * errors[1]


def test_infinity_in_the_input_is_nan_and_zeros():
    """The page's sentence about float32: the coordinate NaN, the others 0."""
    y = rms_norm(torch.tensor([2.0, float("inf"), 3.0]))
    assert y.isnan().tolist() == [False, True, False]
    assert y[0] == y[2] == 0
