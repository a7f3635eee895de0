"""weight_norm: w = g v / |v| a row, its values, its gradients, against torch."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from snippets.norm_family.weights import weight_norm
from tests.snippets.norm_family.float64 import assert_close, gradients, numbers

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
]


def _wide(g, v):
    return g.reshape(-1, *[1] * (v.ndim - 1))


def _rows(v):
    return tuple(range(1, v.ndim))


def one_length_for_the_whole_matrix(v, g):
    return _wide(g, v) * v / v.norm()


def length_of_the_columns(v, g):
    return _wide(g, v) * v / torch.linalg.vector_norm(v, dim=0, keepdim=True)


def length_not_divided_out(v, g):
    return _wide(g, v) * v


def divided_by_the_squared_length(v, g):
    return _wide(g, v) * v / v.square().sum(_rows(v), keepdim=True)


def root_mean_square_for_the_length(v, g):
    return _wide(g, v) * v * torch.rsqrt(v.square().mean(_rows(v), keepdim=True))


def sum_of_absolute_values(v, g):
    return _wide(g, v) * v / v.abs().sum(_rows(v), keepdim=True)


def gain_ignored(v, g):
    return v / torch.linalg.vector_norm(v, dim=_rows(v), keepdim=True) + 0 * _wide(g, v)


def exponential_gain(v, g):
    return (
        _wide(g.exp(), v) * v / torch.linalg.vector_norm(v, dim=_rows(v), keepdim=True)
    )


def absolute_gain(v, g):
    return (
        _wide(g.abs(), v) * v / torch.linalg.vector_norm(v, dim=_rows(v), keepdim=True)
    )


def detached_length(v, g):
    length = torch.linalg.vector_norm(v.detach(), dim=_rows(v), keepdim=True)
    return _wide(g, v) * v / length


def eps_added_to_the_length(v, g):
    length = torch.linalg.vector_norm(v, dim=_rows(v), keepdim=True)
    return _wide(g, v) * v / (length + 1e-6)


def centred_first(v, g):
    if v[0].numel() > 1:
        v = v - v.mean(_rows(v), keepdim=True)
    return _wide(g, v) * v / torch.linalg.vector_norm(v, dim=_rows(v), keepdim=True)


def last_axis_only(v, g):
    return _wide(g, v) * v / torch.linalg.vector_norm(v, dim=-1, keepdim=True)


def largest_singular_value(v, g):
    largest = torch.linalg.matrix_norm(v.flatten(1), 2)
    return _wide(g, v) * v / largest


VARIANTS = [
    one_length_for_the_whole_matrix,
    length_of_the_columns,
    length_not_divided_out,
    divided_by_the_squared_length,
    root_mean_square_for_the_length,
    sum_of_absolute_values,
    gain_ignored,
    exponential_gain,
    absolute_gain,
    detached_length,
    eps_added_to_the_length,
    centred_first,
    last_axis_only,
    largest_singular_value,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(weight_norm)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


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
