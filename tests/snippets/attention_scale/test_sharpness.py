"""The bound of QK-Norm, the slope of softmax, and logits of scaled matrices."""

import pytest
import torch
from torch.nn.functional import rms_norm

from snippets.attention_scale.sharpness import logits


@pytest.mark.parametrize("width", [4, 64, 128])
def test_the_bound_is_the_root_of_the_width(width):
    torch.manual_seed(0)
    q = 1e3 * torch.randn(50, width, dtype=torch.float64)
    n = rms_norm(q, (width,), eps=1e-12)
    z = n @ n.T / width**0.5
    assert z.abs().max().item() == pytest.approx(width**0.5)


def test_slope_of_a_weight():
    for scale in (1, 4, 16):
        z = (scale * logits).double()
        p = z.softmax(-1)
        slopes = torch.autograd.functional.jacobian(lambda z: z.softmax(-1), z)
        assert torch.allclose(slopes.diagonal(), p * (1 - p))
    assert slopes.abs().max() < 1e-6


def test_both_matrices_times_four():
    torch.manual_seed(0)
    x, q, k = (torch.randn(n, 8, dtype=torch.float64) for n in (3, 8, 8))
    before = (x @ q) @ (x @ k).T
    assert torch.allclose((x @ (4 * q)) @ (x @ (4 * k)).T, 16 * before)


def test_entropy_falls():
    entropies = [
        torch.special.entr((s * logits).softmax(-1)).sum() for s in (0, 1, 4, 16)
    ]
    assert entropies == sorted(entropies, reverse=True)
    assert entropies[-1] < 1e-3
