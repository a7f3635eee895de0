"""batch_norm_backward against autograd through torch's BatchNorm in float64."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.batch_norm_backward import batch_norm_backward
from tests.snippets.coding.cases import (
    ONE_ROUNDING,
    close,
    gains,
    has_dtype,
    in_every_dtype,
    numbers,
    results,
    unchanged,
)

JUDGED = batch_norm_backward
NAMES = ("grad_x", "grad_gain", "grad_bias")


def _wanted(grad_y, x, gain, eps):
    grad_y, x, gain = (each.detach().double() for each in (grad_y, x, gain))
    bias = torch.zeros_like(gain).requires_grad_()
    x.requires_grad_(), gain.requires_grad_()
    y = F.batch_norm(x, None, None, gain, bias, True, 0.1, eps)
    return torch.autograd.grad(y, (x, gain, bias), grad_y)


def _compare(backward, grad_y, x, gain, eps, rtol, case):
    with unchanged(case, grad_y, x, gain):
        found = backward(grad_y, x, gain, eps)
    results(found, " ".join(NAMES), case)
    kinds = x.dtype, gain.dtype, gain.dtype
    wanted = _wanted(grad_y, x, gain, eps)
    for name, a, b, dtype in zip(NAMES, found, wanted, kinds, strict=True):
        close(name, a, b, rtol, case=case)
        has_dtype(name, a, dtype, case)


def check_shapes(backward):
    for shape in ((2, 3), (3, 5), (33, 4), (7, 1), (5, 17)):
        x = numbers(shape, offset=2.0)
        gain, grad_y = gains(shape[-1]), numbers(shape, seed=1, offset=1.0)
        rtol = 1e-6 if len(x) == 2 else 1e-9  # two samples: +-1, all cancels
        case = f"x {shape} in float64, gain random"
        _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


def check_faint_samples(backward):
    x, gain, grad_y = numbers((9, 3), scale=3e-3), gains(3), numbers((9, 3), seed=1)
    for eps in (1e-5, 1e-6):
        case = f"x of size 3e-3, eps {eps}"
        _compare(backward, grad_y, x, gain, eps, 1e-9, case)


def check_large_mean(backward):
    x, gain = numbers((64, 4), dtype=torch.float32), gains(4, dtype=torch.float32)
    grad_y = numbers((64, 4), dtype=torch.float32, seed=1)
    case = "float32 samples with mean 3000"
    _compare(backward, grad_y, x + 3000, gain, 1e-5, 1e-2, case)


@in_every_dtype
def check_dtypes(backward, dtype):
    wide = torch.promote_types(dtype, torch.float32)
    x, gain = numbers((33, 5), dtype=dtype), gains(5, dtype=wide)
    grad_y = numbers((33, 5), dtype=dtype, seed=1)
    rtol, case = 1.5 * ONE_ROUNDING[dtype], f"x (33, 5) in {dtype}"
    _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


def check_many_samples(backward):
    x, gain = numbers((2048, 5), dtype=torch.bfloat16), gains(5, dtype=torch.float32)
    grad_y = numbers((2048, 5), seed=1).abs().to(torch.bfloat16)
    rtol, case = 1.5 * ONE_ROUNDING[torch.bfloat16], "2048 samples in bfloat16"
    _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


CHECKS = [
    check_dtypes,
    check_shapes,
    check_faint_samples,
    check_large_mean,
    check_many_samples,
]


def _parts(grad_y, x, gain, eps):
    g, h = grad_y.to(gain.dtype), x.to(gain.dtype)
    c = h - h.mean(0)
    r = torch.rsqrt(c.square().mean(0) + eps)
    return g, c, r, c * r


def _finish(grad_x, terms, g, x):
    return grad_x.to(x.dtype), terms.sum(0), g.sum(0)


def statistics_are_constants(grad_y, x, gain, eps=1e-5):
    g, _, r, n = _parts(grad_y, x, gain, eps)
    return _finish(gain * r * g, g * n, g, x)


def mean_term_forgotten(grad_y, x, gain, eps=1e-5):
    g, _, r, n = _parts(grad_y, x, gain, eps)
    return _finish(gain * r * (g - n * (g * n).mean(0)), g * n, g, x)


def variance_term_forgotten(grad_y, x, gain, eps=1e-5):
    g, _, r, n = _parts(grad_y, x, gain, eps)
    return _finish(gain * r * (g - g.mean(0)), g * n, g, x)


def unbiased_variance_term(grad_y, x, gain, eps=1e-5):
    g, _, r, n = _parts(grad_y, x, gain, eps)
    along = (g * n).sum(0) / (len(x) - 1)
    return _finish(gain * r * (g - g.mean(0) - n * along), g * n, g, x)


def sums_where_means_belong(grad_y, x, gain, eps=1e-5):
    g, _, r, n = _parts(grad_y, x, gain, eps)
    return _finish(gain * r * (g - g.sum(0) - n * (g * n).sum(0)), g * n, g, x)


def gain_forgotten(grad_y, x, gain, eps=1e-5):
    g, _, r, n = _parts(grad_y, x, gain, eps)
    return _finish(r * (g - g.mean(0) - n * (g * n).mean(0)), g * n, g, x)


def means_over_the_features(grad_y, x, gain, eps=1e-5):
    g, _, r, n = _parts(grad_y, x, gain, eps)
    u = g * gain
    along = n * (u * n).mean(-1, keepdim=True)
    return _finish(r * (u - u.mean(-1, keepdim=True) - along), g * n, g, x)


def two_moments(grad_y, x, gain, eps=1e-5):
    g, c, _, _ = _parts(grad_y, x, gain, eps)
    h = x.to(gain.dtype)
    r = torch.rsqrt(h.square().mean(0) - h.mean(0).square() + eps)
    n = c * r
    return _finish(gain * r * (g - g.mean(0) - n * (g * n).mean(0)), g * n, g, x)


def centred_for_normalized(grad_y, x, gain, eps=1e-5):
    g, c, r, _ = _parts(grad_y, x, gain, eps)
    return _finish(gain * r * (g - g.mean(0) - c * (g * c).mean(0)), g * c, g, x)


def eps_forgotten(grad_y, x, gain, eps=1e-5):
    return batch_norm_backward(grad_y, x, gain, 0.0)


def bias_scaled_by_the_gain(grad_y, x, gain, eps=1e-5):
    grad_x, grad_gain, grad_bias = batch_norm_backward(grad_y, x, gain, eps)
    return grad_x, grad_gain, gain * grad_bias


def parameters_averaged_over_the_batch(grad_y, x, gain, eps=1e-5):
    grad_x, grad_gain, grad_bias = batch_norm_backward(grad_y, x, gain, eps)
    return grad_x, grad_gain / len(x), grad_bias / len(x)


def all_in_the_dtype_of_x(grad_y, x, gain, eps=1e-5):
    found = batch_norm_backward(grad_y, x, gain.to(x.dtype), eps)
    return found[0], found[1].to(gain.dtype), found[2].to(gain.dtype)


VARIANTS = [
    statistics_are_constants,
    mean_term_forgotten,
    variance_term_forgotten,
    unbiased_variance_term,
    sums_where_means_belong,
    gain_forgotten,
    means_over_the_features,
    two_moments,
    centred_for_normalized,
    eps_forgotten,
    bias_scaled_by_the_gain,
    parameters_averaged_over_the_batch,
    all_in_the_dtype_of_x,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
