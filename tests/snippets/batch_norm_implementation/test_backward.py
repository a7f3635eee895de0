"""batch_norm_backward against the explicit Jacobian, autograd and torch."""

import pytest
import torch
from torch.nn import functional as F

from snippets.batch_norm_implementation.backward import batch_norm_backward
from snippets.batch_norm_vs_layer_norm.norms import BatchNorm
from tests.same_results import on_views
from tests.snippets.batch_norm_vs_layer_norm.float64 import (
    affine,
    assert_close,
    batch_norm_gradients,
    tokens,
)
from tests.wrong import suite

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


CHECKS = [
    check_train,
    check_eval,
    check_nothing_changes,
    on_views(
        tokens((5, 3), seed=1),
        tokens((5, 3)),
        call=lambda backward, *given: backward(*given, _norm(3)),
    ),
]


test_right, test_known_wrong = suite(batch_norm_backward, CHECKS)


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
