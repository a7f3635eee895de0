"""standardize: values, gradients, dtypes, both conventions, and against torch."""

import statistics

import pytest
import torch
from torch.nn import functional as F

from snippets.why_normalize.standardize import standardize
from tests.same_results import on_views
from tests.snippets.why_normalize.float64 import (
    assert_close,
    numbers,
    reference,
    reference_gradient,
)
from tests.wrong import suite

CASES = [
    ((7,), -1),
    ((3, 7), -1),
    ((5, 3), 0),
    ((2, 5, 31), -1),
    ((4, 3, 6), (0, 2)),
    ((4, 3, 6), (0, 1)),
    ((2, 3, 4, 5), (1, 2, 3)),
    ((2, 3, 4, 5), 1),
]
RTOL = {torch.float32: 4e-6, torch.bfloat16: 2**-8 * 1.01, torch.float16: 2**-11 * 1.02}


def check_values_and_gradients(function):
    for shape, dim in CASES:
        for offset, scale in ((0.0, 1.0), (50.0, 1.0), (0.3, 1e-3), (2.0, 1e12)):
            for correction, eps in ((0, 0.0), (1, 0.0), (0, 1e-2)):
                x = numbers(shape, offset=offset, scale=scale).requires_grad_()
                grad_y = numbers(shape, seed=1)
                y = function(x, dim, correction, eps)
                expected = reference(x, dim, correction, eps)
                assert_close(y, expected, 1e-9, 1e-10)
                (grad_x,) = torch.autograd.grad(y, x, grad_y)
                wanted = reference_gradient(grad_y, x, dim, correction, eps)
                size = float(wanted.abs().max())
                assert_close(grad_x, wanted, 1e-8, 1e-8 * size, "gradient")


def check_defaults_are_the_population(function):
    x = numbers((4, 5), offset=1.0)
    assert_close(function(x), reference(x), 1e-12, 1e-12)


def check_a_large_mean_does_not_cancel(function):
    x = numbers((3, 9), offset=1e6)
    assert_close(function(x), reference(x), 1e-7, 1e-7)


def check_equal_values(function):
    x = torch.full((2, 5), 3.0, dtype=torch.float64)
    assert bool(function(x).isnan().all()), "no z-score without a deviation"
    assert torch.equal(function(x, eps=1e-5), torch.zeros_like(x))


def check_every_dtype(function):
    for dtype, rtol in RTOL.items():
        for shape in ((5, 7), (2, 3, 33)):
            x = numbers(shape, offset=4.0, dtype=dtype)
            y = function(x, eps=1e-5)
            assert y.dtype == dtype, f"{dtype} in, {y.dtype} out"
            assert_close(y, reference(x, eps=1e-5), rtol, rtol / 4, str(dtype))


def check_input_unchanged(function):
    x = numbers((3, 5))
    before = x.clone()
    function(x)
    assert torch.equal(x, before), "x was modified"


CHECKS = [
    check_values_and_gradients,
    check_defaults_are_the_population,
    check_a_large_mean_does_not_cancel,
    check_equal_values,
    check_every_dtype,
    check_input_unchanged,
    on_views(numbers((2, 3, 7)), -1, 0, 1e-5),
]


test_right, test_known_wrong = suite(standardize, CHECKS)


def test_gradcheck():
    x = numbers((2, 3, 5), offset=1.0).requires_grad_()
    for dim in (-1, (0, 2)):
        assert torch.autograd.gradcheck(lambda z, d=dim: standardize(z, d, 0, 1e-3), x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_equals_torch(dtype):
    """LayerNorm over features, BatchNorm over batch and positions, with gradients."""
    x = numbers((4, 3, 9), offset=2.0, dtype=dtype).requires_grad_()
    grad_y = numbers((4, 3, 9), seed=1, dtype=dtype)
    pairs = (
        (standardize(x, -1, eps=1e-5), F.layer_norm(x, (9,))),
        (standardize(x, (1, 2), eps=1e-3), F.layer_norm(x, (3, 9), eps=1e-3)),
        (
            standardize(x, (0, 2), eps=1e-5),
            F.batch_norm(x, None, None, training=True, eps=1e-5),
        ),
    )
    unit = torch.finfo(dtype).eps
    for ours, theirs in pairs:
        assert_close(ours, theirs.detach().double(), 64 * unit, 64 * unit)
        gradients = (torch.autograd.grad(y, x, grad_y)[0] for y in (ours, theirs))
        a, b = (gradient.double() for gradient in gradients)
        assert_close(a, b, 64 * unit, 64 * unit * float(b.abs().max()))


def test_the_marks():
    """The page's numbers, from Python's own statistics."""
    marks = [87, 92, 65, 99, 41]
    mean = statistics.mean(marks)
    assert mean == 76.8 and statistics.median(marks) == 87
    for correction, deviation, z in (
        (0, statistics.pstdev(marks), 0.48),
        (1, statistics.stdev(marks), 0.43),
    ):
        ours = standardize(torch.tensor(marks).double(), correction=correction)
        expected = torch.tensor([(mark - mean) / deviation for mark in marks])
        assert_close(ours, expected.double(), 1e-6)
        assert round(ours[0].item(), 2) == z
    assert round(statistics.pstdev(marks), 2) == 21.21
    assert round(statistics.stdev(marks), 2) == 23.71
