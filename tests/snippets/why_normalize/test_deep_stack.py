"""The stack's layers, size and spread, and what the page says of its table."""

import pytest
import torch
from torch import nn

from snippets.why_normalize.deep_stack import (
    batch_normed,
    make_layers,
    normed,
    plain,
    residual,
    residual_normed,
    size,
    spread,
)
from tests.same_results import on_views
from tests.snippets.why_normalize.float64 import assert_close, numbers
from tests.wrong import suite

SHAPES = ((2, 1), (2, 7), (5, 3), (64, 31))


def _pairs(h):
    """Root of the mean squared difference of pairs of inputs, by features."""
    n, d = h.shape
    total = sum(float((h[i] - h[j]).square().sum()) for i in range(n) for j in range(i))
    return torch.tensor((total / (n * (n - 1) * d)) ** 0.5, dtype=torch.float64)


def check_spread_is_that_of_pairs(measure):
    for shape in SHAPES:
        for offset, scale in ((0.0, 1.0), (30.0, 1.0), (0.0, 1e-9), (0.0, 1e9)):
            h = numbers(shape, offset=offset, scale=scale)
            assert_close(measure(h), _pairs(h), 1e-10)


def check_equal_inputs_have_none(measure):
    h = numbers((1, 9)).expand(6, 9)
    assert float(measure(h)) < 1e-12, "inputs are equal, features are not"


def check_a_shared_vector_changes_nothing(measure):
    h = numbers((6, 9))
    assert_close(measure(h + 100 * numbers((1, 9), seed=3)), _pairs(h), 1e-9)


def check_constant_features_count(measure):
    """Inputs that differ as whole numbers: no deviation inside of a row."""
    h = torch.arange(4.0, dtype=torch.float64)[:, None].expand(4, 6)
    assert_close(measure(h), _pairs(h), 1e-12)


CHECKS = [
    check_spread_is_that_of_pairs,
    check_equal_inputs_have_none,
    check_a_shared_vector_changes_nothing,
    check_constant_features_count,
    on_views(numbers((6, 9))),
]


test_right, test_known_wrong = suite(spread, CHECKS)


def test_size_and_spread_share_the_energy():
    """Mean square = spread² (n - 1) / n + mean square of the mean input."""
    h = numbers((8, 5), offset=2.0)
    energy = spread(h) ** 2 * 7 / 8 + h.mean(0).square().mean()
    assert_close(size(h) ** 2, energy, 1e-12)


def test_layers_equal_torch_modules():
    (weight, bias), *_ = make_layers(1, 7, 0.5, 0.3)
    linear = nn.Linear(7, 7).double()
    linear.weight.data, linear.bias.data = weight, bias
    norm = nn.LayerNorm(7, eps=1e-6, elementwise_affine=False).double()
    over_batch = nn.BatchNorm1d(7, eps=1e-6, affine=False).double()
    h = numbers((5, 7))
    for ours, theirs in (
        (plain, torch.relu(linear(h))),
        (normed, torch.relu(norm(linear(h)))),
        (batch_normed, torch.relu(over_batch(linear(h)))),
        (residual, h + linear(torch.relu(h))),
        (residual_normed, h + linear(torch.relu(norm(h)))),
    ):
        assert_close(ours(h, weight, bias), theirs.detach(), 1e-12, 1e-12)


def test_pytorch_default_has_the_stated_variance():
    torch.manual_seed(0)
    layer = nn.Linear(512, 512)
    for drawn in (layer.weight.detach(), layer.bias.detach()):
        assert float(drawn.abs().max()) <= 512**-0.5
        assert drawn.var().item() == pytest.approx(1 / (3 * 512), rel=0.15)


def _run(layer, weight_std, bias_std=0.0, depth=30, d=128):
    torch.manual_seed(0)
    h = torch.randn(64, d, dtype=torch.float64)
    for weight, bias in make_layers(depth, d, weight_std, bias_std):
        h = layer(h, weight, bias)
    return h


def test_default_rests_on_its_biases():
    d = 128
    h = _run(plain, (3 * d) ** -0.5, (3 * d) ** -0.5)
    assert float(size(h)) == pytest.approx((5 * d) ** -0.5, rel=0.15)
    assert float(spread(h) / size(h)) < 1e-9


def test_without_biases_initializations_differ_by_a_factor():
    d = 128
    he = _run(plain, (2 / d) ** 0.5)
    for weight_std in (d**-0.5, 1.0):
        other = _run(plain, weight_std)
        factor = (weight_std / (2 / d) ** 0.5) ** 30
        assert_close(other / factor, he, 1e-9, 1e-12)


def test_a_norm_makes_the_size_independent_of_the_initialization():
    for weight_std in (1e-2, 1.0, 30.0):
        assert float(size(_run(normed, weight_std))) == pytest.approx(0.5**0.5, rel=0.1)


def test_norm_removes_length_and_not_more():
    """Normalized stacks and He, its lengths made equal, have one spread."""
    he = _run(plain, (2 / 128) ** 0.5)
    unit = he / he.square().mean(-1, keepdim=True).sqrt()
    norm = _run(normed, 1.0)
    share = float(spread(norm) / size(norm))
    assert share == pytest.approx(float(spread(unit) / size(unit)), rel=0.1)
    assert share < 0.5 * float(spread(he) / size(he))


def test_layer_norm_and_residual_keep_the_spread():
    he = (2 / 128) ** 0.5
    stream, bare = _run(residual_normed, he), _run(residual, he)
    assert float(size(stream)) < 8 < 1e4 < float(size(bare))
    shares = [float(spread(h) / size(h)) for h in (stream, bare, _run(normed, he))]
    assert shares[0] > 0.6 and shares == sorted(shares, reverse=True)


def _gradient_ratio(layer, weight_std, depth, d=128):
    torch.manual_seed(0)
    x, grad_y = torch.randn(2, 64, d, dtype=torch.float64)
    x.requires_grad_()
    h = x
    for weight, bias in make_layers(depth, d, weight_std):
        h = layer(h, weight, bias)
    return float(size(torch.autograd.grad(h, x, grad_y)[0]) / size(grad_y))


def test_batch_norm_keeps_the_spread_and_its_gradient_grows():
    """At every size of the weights; LayerNorm's gradient does not."""
    for weight_std in (0.05, 1.0, 20.0):
        h = _run(batch_normed, weight_std)
        assert float(spread(h) / size(h)) > 0.8
        ratios = [_gradient_ratio(batch_normed, weight_std, n) for n in (10, 20, 30)]
        assert ratios[0] > 2 and ratios[1] > 3 * ratios[0] and ratios[2] > 3 * ratios[1]
        assert 0.1 < _gradient_ratio(normed, weight_std, 30) < 1
