"""layer_norm_backward against autograd through torch's LayerNorm in float64."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.layer_norm_backward import layer_norm_backward
from tests.snippets.coding.cases import (
    ONE_ROUNDING,
    SHAPES,
    close,
    gains,
    has_dtype,
    in_every_dtype,
    numbers,
    results,
    unchanged,
)

JUDGED = layer_norm_backward
NAMES = ("grad_x", "grad_gain", "grad_bias")


def _wanted(grad_y, x, gain, eps):
    grad_y, x, gain = (each.detach().double() for each in (grad_y, x, gain))
    bias = torch.zeros_like(gain).requires_grad_()
    x.requires_grad_(), gain.requires_grad_()
    y = F.layer_norm(x, x.shape[-1:], gain, bias, eps)
    return torch.autograd.grad(y, (x, gain, bias), grad_y)


def _compare(backward, grad_y, x, gain, eps, rtol, case):
    with unchanged(case, grad_y, x, gain):
        found = backward(grad_y, x, gain, eps)
    results(found, " ".join(NAMES), case)
    for name, a, b in zip(NAMES, found, _wanted(grad_y, x, gain, eps), strict=True):
        close(name, a, b, rtol, case=case)
        has_dtype(name, a, x.dtype, case)


def check_shapes(backward):
    for shape in SHAPES:
        x = numbers(shape, offset=2.0)
        gain, grad_y = gains(shape[-1]), numbers(shape, seed=1, offset=1.0)
        rtol = 1e-6 if shape[-1] == 2 else 1e-9  # two features: ±1, all cancels
        case = f"x {shape} in float64, gain random"
        _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


def check_faint_rows(backward):
    x, gain, grad_y = numbers((3, 9), scale=3e-3), gains(9), numbers((3, 9), seed=1)
    for eps in (1e-5, 1e-6):
        case = f"x of size 3e-3, eps {eps}"
        _compare(backward, grad_y, x, gain, eps, 1e-9, case)


def check_large_mean(backward):
    x, gain = numbers((4, 64), dtype=torch.float32), gains(64, dtype=torch.float32)
    grad_y = numbers((4, 64), dtype=torch.float32, seed=1)
    case = "float32 rows with mean 3000"
    _compare(backward, grad_y, x + 3000, gain, 1e-5, 1e-2, case)


@in_every_dtype
def check_dtypes(backward, dtype):
    x, gain = numbers((2, 5, 33), dtype=dtype), gains(33, dtype=dtype)
    grad_y = numbers((2, 5, 33), dtype=dtype, seed=1)
    rtol, case = 1.5 * ONE_ROUNDING[dtype], f"x (2, 5, 33) in {dtype}"
    _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


def check_many_tokens(backward):
    x = numbers((2048, 5), dtype=torch.bfloat16)
    gain = gains(5, dtype=torch.bfloat16)
    grad_y = numbers((2048, 5), seed=1).abs().to(torch.bfloat16)
    rtol, case = 1.5 * ONE_ROUNDING[torch.bfloat16], "2048 tokens in bfloat16"
    _compare(backward, grad_y, x, gain, 1e-5, rtol, case)


CHECKS = [
    check_dtypes,
    check_shapes,
    check_faint_rows,
    check_large_mean,
    check_many_tokens,
]


def _parts(grad_y, x, gain, eps):
    wide = torch.promote_types(x.dtype, torch.float32)
    g, h = grad_y.to(wide), x.to(wide)
    c = h - h.mean(-1, keepdim=True)
    r = torch.rsqrt(c.square().mean(-1, keepdim=True) + eps)
    return g, c, r, c * r, g * gain


def _mean(x):
    return x.mean(-1, keepdim=True)


def _right_x(r, n, u):
    return r * (u - _mean(u) - n * _mean(u * n))


def _finish(grad_x, terms, g, x):
    rows = terms.reshape(-1, x.shape[-1]), g.reshape(-1, x.shape[-1])
    return tuple(each.to(x.dtype) for each in (grad_x, rows[0].sum(0), rows[1].sum(0)))


def statistics_are_constants(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * u, g * n, g, x)


def mean_term_forgotten(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - n * _mean(u * n)), g * n, g, x)


def variance_term_forgotten(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - _mean(u)), g * n, g, x)


def gain_after_the_projections(grad_y, x, gain, eps=1e-5):
    g, _, r, n, _ = _parts(grad_y, x, gain, eps)
    return _finish(gain * _right_x(r, n, g), g * n, g, x)


def unbiased_variance_term(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    along = (u * n).sum(-1, keepdim=True) / max(x.shape[-1] - 1, 1)
    return _finish(r * (u - _mean(u) - n * along), g * n, g, x)


def two_moments(grad_y, x, gain, eps=1e-5):
    g, c, _, _, u = _parts(grad_y, x, gain, eps)
    h = x.to(c.dtype)
    r = torch.rsqrt(_mean(h.square()) - _mean(h).square() + eps)
    return _finish(_right_x(r, c * r, u), g * c * r, g, x)


def row_summed_when_alone(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    tokens = tuple(range(x.ndim - 1))
    found = _right_x(r, n, u), (g * n).sum(tokens), g.sum(tokens)
    return tuple(each.to(x.dtype) for each in found)


def centred_for_normalized(grad_y, x, gain, eps=1e-5):
    g, c, r, _, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - _mean(u) - c * _mean(u * c)), g * c, g, x)


def eps_forgotten(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, 0.0)
    return _finish(_right_x(r, n, u), g * n, g, x)


def bias_scaled_by_the_gain(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(_right_x(r, n, u), g * n, u, x)


def first_sequence_only(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    one = slice(0, 1) if x.ndim > 2 else slice(None)
    return _finish(_right_x(r, n, u), (g * n)[one], g[one], x)


def parameters_averaged_over_tokens(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    rows = x.numel() // x.shape[-1]
    return _finish(_right_x(r, n, u), g * n / rows, g / rows, x)


def all_in_the_dtype_of_x(grad_y, x, gain, eps=1e-5):
    c = x - _mean(x)
    r = torch.rsqrt(_mean(c.square()) + eps)
    n, u = c * r, grad_y * gain
    return _finish(_right_x(r, n, u), grad_y * n, grad_y, x)


VARIANTS = [
    statistics_are_constants,
    mean_term_forgotten,
    variance_term_forgotten,
    gain_after_the_projections,
    unbiased_variance_term,
    two_moments,
    row_summed_when_alone,
    centred_for_normalized,
    eps_forgotten,
    bias_scaled_by_the_gain,
    first_sequence_only,
    parameters_averaged_over_tokens,
    all_in_the_dtype_of_x,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
