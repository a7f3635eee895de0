"""Eight bits and back, and the bound of a norm's output that gives the scale."""

import pytest
import torch

from snippets.low_precision.float8 import LARGEST, through
from snippets.rms_norm.reference import rms_norm


@pytest.mark.parametrize("dtype", list(LARGEST))
def test_no_input_takes_a_norm_beyond_its_bound(dtype):
    torch.manual_seed(1)
    d, gain = 96, 3 * torch.randn(96)
    x = torch.randn(64, d) * 10.0 ** torch.randint(-4, 5, (64, 1))
    x[0] = torch.eye(d)[7] * 1e6  # one entry that holds all
    y = rms_norm(x, gain)
    bound = d**0.5 * gain.abs().max()
    assert y.abs().max() <= bound * 1.001
    low = through(y, bound / LARGEST[dtype], dtype)
    assert low.isfinite().all()
    assert (low - y).abs().max() < bound / (25 if dtype != torch.int8 else 200)


def test_numbers_that_eight_bits_hold_come_back():
    y = torch.tensor([[0.0, 1.0, -2.0, 448.0]])
    assert torch.equal(through(3 * y, 3.0, torch.float8_e4m3fn), 3 * y)
    y = torch.tensor([[0.0, 1.0, -2.0, 127.0]])
    assert torch.equal(through(y, torch.ones(1, 1), torch.int8), y)
    assert through(torch.tensor([1e6]), 1.0, torch.float8_e4m3fn) == 448
