"""The eps that F.rms_norm uses if it gets none, and how the page finds it."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.low_precision import default_epsilon
from snippets.low_precision.default_epsilon import recovered_epsilon
from tests.wrong import suite

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


test_recovered_epsilon, test_rejects = suite(recovered_epsilon, CHECKS)


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
