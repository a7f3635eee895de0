"""scale_invariant_linear: its values, its two identities, where they hold."""

import torch
from torch.nn import functional as F

from snippets.scale_invariance.linear import scale_invariant_linear
from tests.same_results import on_views
from tests.snippets.why_normalize.float64 import assert_close, numbers, reference
from tests.wrong import suite

SHAPES = (((3,), (5, 3)), ((4, 7), (9, 7)), ((2, 3, 6), (6, 6)), ((5, 31), (3, 31)))


def _weights(shape, seed=7):
    return numbers(shape, seed=seed)


def _gradient(layer, x, weight, target, eps=0.0):
    weight = weight.detach().requires_grad_()
    loss = (layer(x, weight, eps) - target).square().sum()
    return torch.autograd.grad(loss, weight)[0]


def check_values(layer):
    for x_shape, shape in SHAPES:
        for eps in (0.0, 1e-2):
            x, weight = numbers(x_shape, offset=0.5), _weights(shape)
            product = torch.einsum("...i,oi->...o", x, weight)
            expected = reference(product, eps=eps)
            assert_close(layer(x, weight, eps), expected, 1e-9, 1e-9)


def check_no_factor_is_seen(layer):
    for x_shape, shape in SHAPES:
        x, weight = numbers(x_shape), _weights(shape)
        y = layer(x, weight)
        for factor in (1e-6, 0.3, 1e6):
            assert_close(layer(x, factor * weight), y.detach(), 1e-9, 1e-9)


def check_the_sign_is_seen(layer):
    x, weight = numbers((4, 7)), _weights((9, 7))
    assert_close(layer(x, -weight), -layer(x, weight).detach(), 1e-9, 1e-9)


def check_gradient_is_at_a_right_angle(layer):
    for x_shape, shape in SHAPES:
        x, weight = numbers(x_shape), _weights(shape)
        grad = _gradient(layer, x, weight, numbers((*x_shape[:-1], shape[0]), seed=2))
        along = (grad * weight).sum() / (grad.norm() * weight.norm())
        assert abs(float(along)) < 1e-10, f"cosine {float(along):.2g}"


def check_gradient_shrinks_with_the_weight(layer):
    x, weight, target = numbers((4, 7)), _weights((9, 7)), numbers((4, 9), seed=2)
    near = _gradient(layer, x, weight, target)
    for factor in (0.1, 8.0):
        far = _gradient(layer, x, factor * weight, target)
        assert_close(far * factor, near, 1e-8, 1e-9)


CHECKS = [
    check_values,
    check_no_factor_is_seen,
    check_the_sign_is_seen,
    check_gradient_is_at_a_right_angle,
    check_gradient_shrinks_with_the_weight,
    on_views(numbers((4, 7)), numbers((9, 7), seed=7), 1e-5),
]


test_right, test_known_wrong = suite(scale_invariant_linear, CHECKS)


def test_equals_torch():
    x = numbers((2, 4, 7)).requires_grad_()
    weight = _weights((9, 7)).requires_grad_()
    ours = scale_invariant_linear(x, weight, 1e-5)
    theirs = F.layer_norm(F.linear(x, weight), (9,), eps=1e-5)
    assert_close(ours, theirs.detach(), 1e-11, 1e-11)
    grad_y = numbers((2, 4, 9), seed=3)
    for a, b in zip(
        torch.autograd.grad(ours, (x, weight), grad_y),
        torch.autograd.grad(theirs, (x, weight), grad_y),
        strict=True,
    ):
        assert_close(a, b, 1e-9, 1e-9 * float(b.abs().max()))


def test_the_input_gradient_ignores_the_factor():
    """What reaches the layer below does not change with the scale of W."""
    x, weight = numbers((4, 7)).requires_grad_(), _weights((9, 7))
    grad_y = numbers((4, 9), seed=3)
    near, far = (
        torch.autograd.grad(scale_invariant_linear(x, c * weight), x, grad_y)[0]
        for c in (1.0, 50.0)
    )
    assert_close(far, near, 1e-9, 1e-10)


def test_with_eps_it_holds_only_up_to_eps():
    x, weight = numbers((4, 7)), _weights((9, 7))
    y = scale_invariant_linear(x, weight, 1e-5)
    gap = (scale_invariant_linear(x, 1e-4 * weight, 1e-5) - y).abs().max()
    assert float(gap) > 0.1
