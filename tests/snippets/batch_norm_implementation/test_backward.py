"""batch_norm_backward against the explicit Jacobian, autograd and torch."""

import pytest
import torch
from torch.nn import functional as F

from snippets.batch_norm_implementation.backward import batch_norm_backward
from snippets.batch_norm_vs_layer_norm.norms import BatchNorm
from tests.snippets.batch_norm_vs_layer_norm.float64 import (
    affine,
    assert_close,
    batch_norm_gradients,
    tokens,
)

SHAPES = ((2, 1), (2, 3), (7, 5), (31, 4))


def _norm(d, eps=1e-2, *, training=True):
    norm = affine(BatchNorm(d, eps).double())
    norm.running_mean.copy_(torch.linspace(-1, 2, d))
    norm.running_var.copy_(torch.linspace(0.5, 3, d))
    return norm.train(training)


def check_train(backward):
    for shape in SHAPES:
        for offset, eps in ((0.0, 1e-5), (5.0, 1e-2)):
            norm, x = _norm(shape[-1], eps), tokens(shape, offset=offset)
            grad_y = tokens(shape, seed=1)
            wanted = batch_norm_gradients(grad_y, x, norm.gain, eps)
            for ours, theirs in zip(backward(grad_y, x, norm), wanted, strict=True):
                assert_close(ours, theirs, 1e-8, 1e-8)


def check_eval(backward):
    for shape in ((1, 3), *SHAPES):
        norm, x = _norm(shape[-1], training=False), tokens(shape)
        grad_y = tokens(shape, seed=1)
        r = 1 / (norm.running_var + norm.eps).sqrt()
        unit = (x - norm.running_mean) * r
        wanted = grad_y * norm.gain * r, (grad_y * unit).sum(0), grad_y.sum(0)
        for ours, theirs in zip(backward(grad_y, x, norm), wanted, strict=True):
            assert_close(ours, theirs, 1e-10, 1e-10)


def check_nothing_changes(backward):
    norm, x, grad_y = _norm(3), tokens((5, 3)), tokens((5, 3), seed=1)
    before = [each.clone() for each in (x, grad_y, *norm.buffers())]
    backward(grad_y, x, norm)
    for each, kept in zip((x, grad_y, *norm.buffers()), before, strict=True):
        assert torch.equal(each, kept), "something was modified"


CHECKS = [check_train, check_eval, check_nothing_changes]


def _parts(grad_y, x, norm, correction=0):
    if norm.training:
        var, mean = torch.var_mean(x, 0, correction=correction)
    else:
        mean, var = norm.running_mean, norm.running_var
    r = torch.rsqrt(var + norm.eps)
    return r, (x - mean) * r, grad_y * norm.gain


def _finish(grad_x, n, g):
    return grad_x, (g * n).sum(0), g.sum(0)


def statistics_held_constant(grad_y, x, norm):
    r, n, u = _parts(grad_y, x, norm)
    return _finish(r * u, n, grad_y)


def mean_held_constant(grad_y, x, norm):
    r, n, u = _parts(grad_y, x, norm)
    if norm.training:
        u = u - n * (u * n).mean(0)
    return _finish(r * u, n, grad_y)


def variance_held_constant(grad_y, x, norm):
    r, n, u = _parts(grad_y, x, norm)
    if norm.training:
        u = u - u.mean(0)
    return _finish(r * u, n, grad_y)


def train_formula_in_eval_mode(grad_y, x, norm):
    r, n, u = _parts(grad_y, x, norm)
    return _finish(r * (u - u.mean(0) - n * (u * n).mean(0)), n, grad_y)


def batch_statistics_in_eval_mode(grad_y, x, norm):
    var, mean = torch.var_mean(x, 0, correction=0)
    r = torch.rsqrt(var + norm.eps)
    n, u = (x - mean) * r, grad_y * norm.gain
    if norm.training:
        u = u - u.mean(0) - n * (u * n).mean(0)
    return _finish(r * u, n, grad_y)


def means_over_the_features(grad_y, x, norm):
    r, n, u = _parts(grad_y, x, norm)
    if norm.training:
        u = u - u.mean(-1, keepdim=True) - n * (u * n).mean(-1, keepdim=True)
    return _finish(r * u, n, grad_y)


def sums_for_means(grad_y, x, norm):
    r, n, u = _parts(grad_y, x, norm)
    if norm.training:
        u = u - u.sum(0) - n * (u * n).sum(0)
    return _finish(r * u, n, grad_y)


def unbiased_variance(grad_y, x, norm):
    r, n, u = _parts(grad_y, x, norm, correction=1)
    if norm.training:
        u = u - u.mean(0) - n * (u * n).mean(0)
    return _finish(r * u, n, grad_y)


def gain_missing(grad_y, x, norm):
    r, n, _ = _parts(grad_y, x, norm)
    u = grad_y
    if norm.training:
        u = u - u.mean(0) - n * (u * n).mean(0)
    return _finish(r * u, n, grad_y)


def scale_forgotten(grad_y, x, norm):
    _, n, u = _parts(grad_y, x, norm)
    if norm.training:
        u = u - u.mean(0) - n * (u * n).mean(0)
    return _finish(u, n, grad_y)


def grad_gain_of_the_input(grad_y, x, norm):
    grad_x, _, grad_bias = batch_norm_backward(grad_y, x, norm)
    return grad_x, (grad_y * x).sum(0), grad_bias


def parameter_gradients_averaged(grad_y, x, norm):
    grad_x, grad_gain, grad_bias = batch_norm_backward(grad_y, x, norm)
    return grad_x, grad_gain / len(x), grad_bias / len(x)


def moves_the_running_statistics(grad_y, x, norm):
    norm(x)
    norm.running_mean += 1
    return batch_norm_backward(grad_y, x, norm)


VARIANTS = [
    statistics_held_constant,
    mean_held_constant,
    variance_held_constant,
    train_formula_in_eval_mode,
    batch_statistics_in_eval_mode,
    means_over_the_features,
    sums_for_means,
    unbiased_variance,
    gain_missing,
    scale_forgotten,
    grad_gain_of_the_input,
    parameter_gradients_averaged,
    moves_the_running_statistics,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check):
    check(batch_norm_backward)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_autograd(shape, training):
    """The same as autograd through torch's own batch_norm."""
    norm = _norm(shape[-1], training=training)
    x, grad_y = tokens(shape).requires_grad_(), tokens(shape, seed=1)
    ours = batch_norm_backward(grad_y, x.detach(), norm)
    mean, var = norm.running_mean.clone(), norm.running_var.clone()
    arguments = (mean, var, norm.gain, norm.bias, training, 0.1, norm.eps)
    y = F.batch_norm(x, *arguments)
    theirs = torch.autograd.grad(y, (x, norm.gain, norm.bias), grad_y)
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b, 1e-9, 1e-9)


def test_train_gradients_sum_to_zero():
    norm, x = _norm(4), tokens((9, 4))
    grad_x, _, _ = batch_norm_backward(tokens((9, 4), seed=1), x, norm)
    assert float(grad_x.detach().sum(0).abs().max()) < 1e-12
