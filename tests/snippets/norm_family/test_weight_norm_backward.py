"""weight_norm_backward against the explicit Jacobian and torch."""

import pytest
import torch

from snippets.norm_family.weights import weight_norm, weight_norm_backward
from tests.snippets.norm_family.float64 import assert_close, numbers
from tests.snippets.norm_family.test_weight_norm import SHAPES, lengths


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


CHECKS = [check_both_gradients, check_a_right_angle, check_inputs_unchanged]


def _parts(grad_w, v, g):
    axes = tuple(range(1, v.ndim))
    length = torch.linalg.vector_norm(v, dim=axes, keepdim=True)
    u = v / length
    return (
        axes,
        length,
        u,
        (grad_w * u).sum(axes, keepdim=True),
        g.reshape(length.shape),
    )


def projection_forgotten(grad_w, v, g):
    _, length, _, grad_g, gain = _parts(grad_w, v, g)
    return gain / length * grad_w, grad_g.reshape(g.shape)


def projection_added(grad_w, v, g):
    _, length, u, grad_g, gain = _parts(grad_w, v, g)
    return gain / length * (grad_w + u * grad_g), grad_g.reshape(g.shape)


def gain_forgotten(grad_w, v, g):
    _, length, u, grad_g, _ = _parts(grad_w, v, g)
    return (grad_w - u * grad_g) / length, grad_g.reshape(g.shape)


def length_forgotten(grad_w, v, g):
    _, _, u, grad_g, gain = _parts(grad_w, v, g)
    return gain * (grad_w - u * grad_g), grad_g.reshape(g.shape)


def length_squared(grad_w, v, g):
    _, length, u, grad_g, gain = _parts(grad_w, v, g)
    return gain / length**2 * (grad_w - u * grad_g), grad_g.reshape(g.shape)


def projects_on_v_not_on_its_direction(grad_w, v, g):
    _, length, _, grad_g, gain = _parts(grad_w, v, g)
    return gain / length * (grad_w - v * grad_g), grad_g.reshape(g.shape)


def gradient_of_g_with_v_not_its_direction(grad_w, v, g):
    axes, length, u, grad_g, gain = _parts(grad_w, v, g)
    return gain / length * (grad_w - u * grad_g), (grad_w * v).sum(axes)


def gradient_of_g_averaged(grad_w, v, g):
    axes, length, u, grad_g, gain = _parts(grad_w, v, g)
    return gain / length * (grad_w - u * grad_g), (grad_w * u).mean(axes)


def one_projection_for_the_whole_matrix(grad_w, v, g):
    _, length, _, grad_g, gain = _parts(grad_w, v, g)
    u = v / v.norm()
    return gain / length * (grad_w - u * (grad_w * u).sum()), grad_g.reshape(g.shape)


def mean_removed_instead(grad_w, v, g):
    axes, length, _, grad_g, gain = _parts(grad_w, v, g)
    centred = grad_w - grad_w.mean(axes, keepdim=True)
    return gain / length * centred, grad_g.reshape(g.shape)


def overwrites_grad_w(grad_w, v, g):
    grads = weight_norm_backward(grad_w, v, g)
    grad_w.copy_(grads[0])
    return grads


VARIANTS = [
    projection_forgotten,
    projection_added,
    gain_forgotten,
    length_forgotten,
    length_squared,
    projects_on_v_not_on_its_direction,
    gradient_of_g_with_v_not_its_direction,
    gradient_of_g_averaged,
    one_projection_for_the_whole_matrix,
    mean_removed_instead,
    overwrites_grad_w,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(weight_norm_backward)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_autograd(shape):
    v, g = numbers(shape).requires_grad_(), lengths(shape[0]).requires_grad_()
    grad_w = numbers(shape, seed=1)
    exact = torch.autograd.grad(weight_norm(v, g), (v, g), grad_w)
    for a, b in zip(weight_norm_backward(grad_w, v, g), exact, strict=True):
        assert_close(a, b, 1e-9, 1e-11)
