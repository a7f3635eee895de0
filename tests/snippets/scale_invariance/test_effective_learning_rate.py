"""The effective learning rate is what a step does to the direction."""

import math

import pytest
import torch

from snippets.scale_invariance.linear import (
    effective_learning_rate,
    scale_invariant_linear,
)
from tests.same_results import on_views
from tests.snippets.why_normalize.float64 import assert_close, numbers
from tests.wrong import suite

X, TARGET = numbers((6, 7)), numbers((6, 9), seed=2)


def _gradient(weight):
    weight = weight.detach().requires_grad_()
    loss = (scale_invariant_linear(X, weight) - TARGET).square().mean()
    return torch.autograd.grad(loss, weight)[0]


def _after(weight, lr):
    return scale_invariant_linear(X, weight - lr * _gradient(weight))


def check_equal_rates_take_the_same_step(rate):
    weight = numbers((9, 7), seed=4)
    wanted = rate(0.5, weight)
    for factor in (0.1, 3.0, 40.0):
        lr = 0.5 * wanted / rate(0.5, factor * weight)
        assert_close(_after(factor * weight, lr), _after(weight, 0.5), 1e-8, 1e-8)


def check_it_gives_the_angle_of_a_step(rate):
    """tan(angle) = rate |gradient at the weight scaled to length one|."""
    for scale in (0.2, 1.0, 9.0):
        for shape_seed, lr in ((4, 0.3), (5, 2.0)):
            weight = scale * numbers((9, 7), seed=shape_seed)
            new = weight - lr * _gradient(weight)
            cosine = (new * weight).sum() / (new.norm() * weight.norm())
            tangent = math.tan(math.acos(min(float(cosine), 1.0)))
            unit = float(_gradient(weight / weight.norm()).norm())
            assert tangent == pytest.approx(rate(lr, weight) * unit, rel=1e-4)


def check_it_grows_with_the_learning_rate(rate):
    weight = numbers((9, 7), seed=4)
    assert rate(2.0, weight) == pytest.approx(4 * rate(0.5, weight), rel=1e-12)


def check_known_values(rate):
    weight = torch.tensor([[3.0, 0.0], [0.0, 4.0]], dtype=torch.float64)
    assert rate(0.5, weight) == pytest.approx(0.02, rel=1e-12)
    assert rate(0.5, 10 * weight) == pytest.approx(0.0002, rel=1e-12)


CHECKS = [
    check_equal_rates_take_the_same_step,
    check_it_gives_the_angle_of_a_step,
    check_it_grows_with_the_learning_rate,
    check_known_values,
    on_views(0.5, numbers((9, 7), seed=4)),
]


test_right, test_known_wrong = suite(effective_learning_rate, CHECKS)


def test_a_step_obeys_pythagoras():
    weight = numbers((9, 7), seed=4)
    grad = _gradient(weight)
    new = weight - 0.7 * grad
    expected = weight.square().sum() + 0.49 * grad.square().sum()
    assert_close(new.square().sum(), expected, 1e-12)


def test_decay_balances_growth_at_the_predicted_angle():
    """A gradient of random direction and of size 3 / |W|: the fixed point."""
    lr, decay = 0.1, 0.05
    draws = torch.Generator().manual_seed(0)
    for start in (0.1, 20.0):
        weight = torch.zeros(40, dtype=torch.float64)
        weight[0] = start
        for _ in range(2000):
            noise = torch.randn(40, generator=draws, dtype=torch.float64)
            noise -= weight * (noise @ weight) / (weight @ weight)
            grad = 3 * noise / (noise.norm() * weight.norm())
            old, weight = weight, weight - lr * (grad + decay * weight)
        cosine = old @ weight / (old.norm() * weight.norm())
        angle = math.acos(float(cosine))
        assert angle == pytest.approx(math.sqrt(2 * lr * decay), rel=0.02)
        assert weight.norm().item() == pytest.approx(
            (lr * 9 / (2 * decay)) ** 0.25, rel=0.02
        )
