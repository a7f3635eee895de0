"""Factors multiply up, a norm stops them, and the chapter's powers are right."""

import pytest
import torch
from torch.nn.functional import rms_norm

from snippets.factor_per_layer.eight_layers import size_after


@pytest.mark.parametrize("layers", [1, 8, 12])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_a_factor_a_layer(layers, factor):
    plain = size_after(layers, factor, normed=False).item()
    assert plain == pytest.approx(factor**layers, rel=0.05)
    assert size_after(layers, factor, normed=True).item() == pytest.approx(1, abs=1e-4)


def test_powers():
    assert f"{0.9**100:.5f}" == "0.00003"
    assert round(1.1**100) == 13781
    assert 4**8 == 65536


def test_a_sigmoid_is_steepest_at_a_quarter():
    x = torch.linspace(-9, 9, 1001, dtype=torch.float64, requires_grad=True)
    torch.sigmoid(x).sum().backward()
    assert x.grad.max().item() == pytest.approx(0.25)
    assert x.grad[[0, -1]].max() < 2e-4


def test_larger_weights_and_a_smaller_gradient_cancel():
    """Into the input of W; the norm's own gradient is divided by the factor."""
    torch.manual_seed(0)
    x, w, g = (torch.randn(n, dtype=torch.float64) for n in ((3, 8), (8, 8), (3, 8)))
    found = []
    for factor in (1, 2):
        leaf = x.clone().requires_grad_()
        before = factor * leaf @ w
        before.retain_grad()
        rms_norm(before, (8,), eps=1e-12).backward(g)
        found.append((before.grad, leaf.grad))
    assert torch.allclose(found[1][0], found[0][0] / 2)
    assert torch.allclose(found[1][1], found[0][1])
