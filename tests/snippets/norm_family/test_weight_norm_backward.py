"""weight_norm_backward against the explicit Jacobian and torch."""

import pytest
import torch

from snippets.norm_family.weights import weight_norm, weight_norm_backward
from tests.same_results import on_views
from tests.snippets.norm_family.float64 import assert_close, numbers
from tests.snippets.norm_family.test_weight_norm import SHAPES, lengths
from tests.wrong import suite


def _jacobian(grad_w, v, g):
    grad_v, grad_g = torch.empty_like(v), torch.empty_like(g)
    for i, (row, upstream) in enumerate(zip(v, grad_w, strict=True)):
        flat, size = row.flatten(), float(row.square().sum())
        outer = torch.outer(flat, flat) / size**1.5
        matrix = g[i] * (torch.eye(flat.numel()).double() / size**0.5 - outer)
        grad_v[i] = (matrix @ upstream.flatten()).reshape(row.shape)
        grad_g[i] = upstream.flatten() @ flat / size**0.5
    return grad_v, grad_g


def check_both_gradients(backward):
    for shape in SHAPES[1:]:
        for scale in (1e-3, 1.0, 1e3):
            v, g = numbers(shape, scale=scale), lengths(shape[0])
            grad_w = numbers(shape, seed=1)
            ours = backward(grad_w, v, g)
            for a, b in zip(ours, _jacobian(grad_w, v, g), strict=True):
                assert_close(a, b, 1e-9, 1e-10 * float(b.abs().max()))


def check_a_right_angle(backward):
    v, g = numbers((4, 7)), lengths(4)
    grad_v, _ = backward(numbers((4, 7), seed=1), v, g)
    assert float((grad_v * v).sum(1).abs().max()) < 1e-10


def check_inputs_unchanged(backward):
    inputs = numbers((4, 7), seed=1), numbers((4, 7)), lengths(4)
    before = [each.clone() for each in inputs]
    backward(*inputs)
    assert all(map(torch.equal, inputs, before)), "an input was modified"


CHECKS = [
    check_both_gradients,
    check_a_right_angle,
    check_inputs_unchanged,
    on_views(numbers((4, 7), seed=1), numbers((4, 7)), lengths(4)),
]


test_right, test_known_wrong = suite(weight_norm_backward, CHECKS)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_autograd(shape):
    v, g = numbers(shape).requires_grad_(), lengths(shape[0]).requires_grad_()
    grad_w = numbers(shape, seed=1)
    exact = torch.autograd.grad(weight_norm(v, g), (v, g), grad_w)
    for a, b in zip(weight_norm_backward(grad_w, v, g), exact, strict=True):
        assert_close(a, b, 1e-9, 1e-11)
