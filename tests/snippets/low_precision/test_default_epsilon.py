"""The eps that F.rms_norm uses if it gets none, and how the page finds it."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.low_precision import default_epsilon
from snippets.low_precision.default_epsilon import recovered_epsilon

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def default_of_this_torch(function):
    for dtype in DTYPES:
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        assert function(dtype) == pytest.approx(torch.finfo(wide).eps, rel=1e-2)


def follows_another_default(function):
    """The method must measure: give it a rms_norm with another default."""
    original = F.rms_norm
    for eps in (1e-3, 1e-5, 3e-9):
        try:
            F.rms_norm = lambda x, shape, eps=eps: original(x, shape, None, eps)
            for dtype in (torch.float64, torch.float32):
                assert function(dtype) == pytest.approx(eps, rel=1e-2)
        finally:
            F.rms_norm = original


CHECKS = [default_of_this_torch, follows_another_default]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_recovered_epsilon(check):
    check(recovered_epsilon)


def assumes_float32(dtype):
    return torch.finfo(torch.float32).eps


def assumes_own_type(dtype):
    return torch.finfo(dtype).eps


def assumes_operation_type(dtype):
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return torch.finfo(wide).eps


def forgets_the_square(dtype):
    row = torch.full((8,), 2.0**-20, dtype=dtype)
    x, y = row[0].item(), F.rms_norm(row, (8,))[0].item()
    return x / y


def probes_with_a_large_row(dtype):
    row = torch.full((8,), 1.0, dtype=dtype)
    x, y = row[0].item(), F.rms_norm(row, (8,))[0].item()
    return (x / y) ** 2 - x**2


WRONG = [
    assumes_float32,
    assumes_own_type,
    assumes_operation_type,
    forgets_the_square,
    probes_with_a_large_row,
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda f: f.__name__)
def test_rejects(wrong, known_wrong):
    known_wrong.rejected_by(CHECKS, wrong)


def test_the_page_measures_torch_itself():
    assert default_epsilon.F is F


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_module_has_the_same_default(dtype):
    module = nn.RMSNorm(8, dtype=dtype)
    assert module.eps is None
    row = torch.full((8,), 2.0**-20, dtype=dtype)
    assert torch.equal(module(row), F.rms_norm(row, (8,)))


@pytest.mark.parametrize("x_dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize("gain_dtype", DTYPES[1:], ids=str)
def test_torch_returns_the_input_dtype(x_dtype, gain_dtype):
    x = torch.tensor([1.0, -2.0, 3.0], dtype=x_dtype)
    gain = torch.tensor([0.5, 1.0, 1.5], dtype=gain_dtype)
    with warnings.catch_warnings():  # warns once that no fused kernel takes both
        warnings.simplefilter("ignore")
        y = F.rms_norm(x, (3,), gain, 1e-6)
    assert y.dtype == x_dtype
