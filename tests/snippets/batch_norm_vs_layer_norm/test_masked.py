"""MaskedBatchNorm: padding, whatever it holds, is as good as absent."""

import torch

from snippets.batch_norm_vs_layer_norm.padding import MaskedBatchNorm
from tests.same_results import on_views
from tests.snippets.batch_norm_vs_layer_norm.float64 import (
    affine,
    assert_close,
    batch_norm,
    batch_norm_gradients,
    statistics,
    tokens,
)
from tests.wrong import suite

LENGTHS = (3, 7, 1)


def _case(filling=0.0):
    """(3, 7, 5) tokens with offset, padding filled; the mask."""
    mask = torch.arange(7) < torch.tensor(LENGTHS)[:, None]
    x = tokens((3, 7, 5), offset=2.0)
    return torch.where(mask[..., None], x, filling), mask


def _norm(build, **options):
    return affine(build(5, **options).double())


def check_only_tokens_count(build):
    for filling in (0.0, 1e3, -7.0):
        norm, (x, mask) = _norm(build, eps=1e-3), _case(filling)
        y = norm(x, mask)
        assert y.shape == x.shape, f"shape {tuple(y.shape)}"
        wanted = batch_norm(x[mask], norm.gain, norm.bias, 1e-3)
        assert_close(y[mask], wanted, 1e-9, 1e-9)


def check_running_statistics(build):
    norm, (x, mask) = _norm(build, momentum=0.3), _case()
    norm(x, mask)
    mean, var = statistics(x[mask])
    assert_close(norm.running_mean, 0.3 * mean, 1e-10, 1e-12, "running_mean")
    n = sum(LENGTHS)
    unbiased = 0.7 + 0.3 * var * n / (n - 1)
    assert_close(norm.running_var, unbiased, 1e-10, 1e-12, "running_var")


def check_full_mask(build):
    norm, (x, mask) = _norm(build), _case(1.0)
    y = norm(x, torch.ones_like(mask))
    assert_close(y, batch_norm(x, norm.gain, norm.bias, 1e-5), 1e-9, 1e-9)


def check_gradients(build):
    norm, (x, mask) = _norm(build, eps=1e-3), _case(4.0)
    grad_y = tokens((3, 7, 5), seed=1) * mask[..., None]  # as a masked loss does
    x.requires_grad_()
    (grad_x,) = torch.autograd.grad(norm(x, mask), x, grad_y)
    wanted, _, _ = batch_norm_gradients(grad_y[mask], x[mask], norm.gain, 1e-3)
    assert_close(grad_x[mask], wanted, 1e-9, 1e-9, "gradient of the tokens")
    assert float(grad_x[~mask].abs().max()) == 0, "padding gets a gradient"


def check_eval(build):
    norm, (x, mask) = _norm(build), _case()
    norm(x, mask)
    kept = norm.running_mean.clone(), norm.running_var.clone()
    y = norm.eval()(x, mask)
    wanted = (x - kept[0]) / (kept[1] + 1e-5).sqrt() * norm.gain + norm.bias
    assert_close(y[mask], wanted[mask], 1e-10, 1e-10)
    assert torch.equal(norm.running_mean, kept[0]), "eval moved the mean"


CHECKS = [
    check_only_tokens_count,
    check_running_statistics,
    check_full_mask,
    check_gradients,
    check_eval,
    on_views(*_case(), call=lambda build, x, mask: _norm(build)(x, mask)),
]


test_right, test_known_wrong = suite(MaskedBatchNorm, CHECKS)


def test_padding_may_hold_nan():
    norm, (x, mask) = _norm(MaskedBatchNorm), _case(float("nan"))
    assert bool(norm(x, mask)[mask].isfinite().all())
    assert bool(norm.running_var.isfinite().all())
