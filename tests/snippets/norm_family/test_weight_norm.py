"""weight_norm: w = g v / |v| a row, its values, its gradients, against torch."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from snippets.norm_family.weights import weight_norm
from tests.same_results import on_views
from tests.snippets.norm_family.float64 import assert_close, gradients, numbers
from tests.wrong import suite

SHAPES = ((1, 1), (4, 7), (7, 4), (3, 5, 2), (2, 3, 3, 1), (5, 31))


def lengths(out, seed=0):
    """Lengths that are not one; one is negative, as g may become."""
    draws = torch.Generator().manual_seed(seed + out)
    g = 0.3 + 2 * torch.rand(out, generator=draws, dtype=torch.float64)
    g[-1] *= -1
    return g


def reference(v, g):
    rows = [
        gain * row / torch.sqrt((row * row).sum())
        for row, gain in zip(v, g, strict=True)
    ]
    return torch.stack(rows)


def check_values_and_gradients(function):
    for shape in SHAPES:
        for scale in (1e-6, 1.0, 1e6):
            v, g = numbers(shape, scale=scale), lengths(shape[0])
            ours = gradients(function, v, g)
            exact = gradients(reference, v, g)
            for a, b in zip(ours, exact, strict=True):
                atol = 1e-11 * max(float(b.abs().max()), 1 / scale)
                assert_close(a, b, 1e-9, atol)


def check_rows_have_the_length_asked_for(function):
    v, g = numbers((4, 7)), lengths(4)
    w = function(v, g)
    assert_close(w.flatten(1).norm(dim=1), g.abs(), 1e-12)


def check_the_scale_of_v_is_not_seen(function):
    v, g = numbers((4, 7)), lengths(4)
    factors = torch.tensor([0.1, 3.0, 50.0, 1.0], dtype=torch.float64)
    assert_close(function(factors[:, None] * v, g), function(v, g), 1e-12)


def check_gradient_is_at_a_right_angle(function):
    v, g = numbers((4, 7)), lengths(4)
    _, grad_v, _ = gradients(function, v, g)
    assert float((grad_v * v).sum(1).abs().max()) < 1e-10


def check_inputs_unchanged(function):
    v, g = numbers((4, 7)), lengths(4)
    before = v.clone(), g.clone()
    function(v, g)
    assert torch.equal(v, before[0]) and torch.equal(g, before[1])


CHECKS = [
    check_values_and_gradients,
    check_rows_have_the_length_asked_for,
    check_the_scale_of_v_is_not_seen,
    check_gradient_is_at_a_right_angle,
    check_inputs_unchanged,
    on_views(numbers((4, 7)), lengths(4)),
]


test_right, test_known_wrong = suite(weight_norm, CHECKS)


@pytest.mark.parametrize(
    "layer", [nn.Linear(7, 4), nn.Conv1d(3, 5, 2), nn.Conv2d(3, 2, 3)], ids=str
)
def test_equals_torch(layer):
    """torch's parametrization with its g and v, forward and backward."""
    layer = parametrizations.weight_norm(layer.double())
    g, v = layer.parametrizations.weight.parameters()
    with torch.no_grad():
        v.copy_(numbers(tuple(v.shape)))
        g.copy_(lengths(len(g)).reshape(g.shape))
    grad_w = numbers(tuple(v.shape), seed=2)
    flat = g.detach().flatten().requires_grad_()
    copy = v.detach().clone().requires_grad_()
    ours = weight_norm(copy, flat)
    assert_close(ours, layer.weight, 1e-12, 1e-12)
    theirs = torch.autograd.grad(layer.weight, (v, g), grad_w)
    for a, b in zip(
        torch.autograd.grad(ours, (copy, flat), grad_w), theirs, strict=True
    ):
        assert_close(a, b.reshape(a.shape), 1e-10, 1e-10)
