"""The chapter's RMSNorm against float64, and what the page says of four numbers."""

import pytest
import torch
from torch.nn.functional import layer_norm

from snippets.dropped_mean.norms import rms_norm

ROW = torch.tensor([3.0, -1.0, 4.0, -2.0])


def right(x, gain, eps):
    x = x.double()
    return gain.double() * x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


@pytest.mark.parametrize("shape", [(1,), (3, 7), (2, 5, 33)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_agrees_with_float64(shape, scale):
    torch.manual_seed(0)
    x, gain = scale * torch.randn(shape), torch.rand(shape[-1]) + 0.5
    for eps in (1e-6, 1e-2):
        found = rms_norm(x, gain, eps).double()
        assert torch.allclose(found, right(x, gain, eps), rtol=1e-5, atol=1e-7)


def test_views_and_halves():
    torch.manual_seed(0)
    x, gain = 300 * torch.randn(7, 5).half(), torch.ones(7)
    found = rms_norm(x.T, gain)
    assert found.dtype == torch.half
    assert torch.allclose(found.double(), right(x.T, gain, 1e-6), atol=2e-3)
    assert not rms_norm(torch.zeros(2, 4), torch.ones(4)).any()


def test_the_example_by_hand():
    squares = [9, 1, 16, 4]
    assert sum(squares) / 4 == 7.5
    ones = torch.ones(4)
    assert torch.allclose(rms_norm(ROW, ones), ROW / 7.5**0.5)
    assert layer_norm(ROW, (4,)).tolist() == pytest.approx(
        [v / 6.5**0.5 for v in (2, -2, 3, -3)], rel=1e-5
    )
    gain = torch.tensor([1.0, 1.0, 2.0, 1.0])
    assert rms_norm(ROW, gain)[2].item() == pytest.approx(2.92, abs=5e-3)


def test_what_a_shift_changes():
    ones = torch.ones(4)
    assert torch.allclose(layer_norm(ROW + 10, (4,)), layer_norm(ROW, (4,)), atol=1e-4)
    assert not torch.allclose(rms_norm(ROW + 10, ones), rms_norm(ROW, ones), atol=0.1)
    assert torch.allclose(rms_norm(3 * ROW, ones), rms_norm(ROW, ones))
