"""layer_norm against torch's LayerNorm in float64, values and gradients."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.layer_norm import layer_norm
from tests.snippets.coding.cases import (
    ONE_ROUNDING,
    SHAPES,
    close,
    gains,
    gradients,
    has_dtype,
    in_every_dtype,
    numbers,
    unchanged,
)

JUDGED = layer_norm


def _inputs(shape, **kinds):
    d, dtype = shape[-1], kinds.get("dtype", torch.float64)
    return numbers(shape, **kinds), gains(d, dtype=dtype), gains(d, seed=1, dtype=dtype)


def _wanted(x, gain, bias, eps):
    x, gain, bias = x.double(), gain.double(), bias.double()
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


def check_shapes(layer_norm):
    for shape in SHAPES:
        x, gain, bias = _inputs(shape, offset=2.0)
        y = layer_norm(x, gain, bias, 1e-3)
        case = f"x {shape} in float64, gain and bias random, eps 1e-3"
        close("y", y, _wanted(x, gain, bias, 1e-3), case=case)


def check_faint_rows(layer_norm):
    x, gain, bias = _inputs((4, 9), scale=1e-3)
    for eps in (1e-5, 1e-6):
        y, case = layer_norm(x, gain, bias, eps), f"x of size 1e-3, eps {eps}"
        close("y", y, _wanted(x, gain, bias, eps), case=case)


def check_large_mean(layer_norm):
    x, gain, bias = _inputs((4, 64), offset=3000.0, dtype=torch.float32)
    y, case = layer_norm(x, gain, bias, 1e-5), "float32 rows with mean 3000"
    close("y", y, _wanted(x, gain, bias, 1e-5), 1e-2, case=case)


@in_every_dtype
def check_dtypes(layer_norm, dtype):
    x, gain, bias = _inputs((16, 33), scale=300.0, offset=3.0, dtype=dtype)
    with unchanged(f"x in {dtype}", x, gain, bias):
        y = layer_norm(x, gain, bias, 1e-5)
    case = f"x of size 300, off centre, in {dtype}"
    has_dtype("y", y, dtype, case)
    close("y", y, _wanted(x, gain, bias, 1e-5), ONE_ROUNDING[dtype], case=case)


def check_gradients(layer_norm):
    inputs = [each.requires_grad_() for each in _inputs((2, 3, 7), offset=1.0)]
    grad_y = numbers((2, 3, 7), seed=1)
    case = "gradients by autograd of x, gain and bias"
    ours = gradients(layer_norm(*inputs, 1e-5), inputs, grad_y, case)
    exact = torch.autograd.grad(_wanted(*inputs, 1e-5), inputs, grad_y)
    for name, a, b in zip(("x", "gain", "bias"), ours, exact, strict=True):
        close(f"gradient of {name}", a, b, case=case)


CHECKS = [
    check_dtypes,
    check_shapes,
    check_faint_rows,
    check_large_mean,
    check_gradients,
]


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def eps_outside_the_root(x, gain, bias, eps=1e-5):
    h = _wide(x)
    c = h - h.mean(-1, keepdim=True)
    y = c / (c.square().mean(-1, keepdim=True).sqrt() + eps)
    return (y * gain + bias).to(x.dtype)


def unbiased_variance(x, gain, bias, eps=1e-5):
    h = _wide(x)
    var = h.var(-1, keepdim=True)
    y = (h - h.mean(-1, keepdim=True)) * torch.rsqrt(var + eps)
    return (y * gain + bias).to(x.dtype)


def two_moments(x, gain, bias, eps=1e-5):
    h = _wide(x)
    mean = h.mean(-1, keepdim=True)
    var = h.square().mean(-1, keepdim=True) - mean.square()
    return ((h - mean) * torch.rsqrt(var + eps) * gain + bias).to(x.dtype)


def statistics_over_all_but_the_batch(x, gain, bias, eps=1e-5):
    dims = tuple(range(min(1, x.ndim - 1), x.ndim))
    h = _wide(x)
    var, mean = torch.var_mean(h, dims, correction=0, keepdim=True)
    return ((h - mean) * torch.rsqrt(var + eps) * gain + bias).to(x.dtype)


def eps_hard_coded(x, gain, bias, eps=1e-5):
    return layer_norm(x, gain, bias)


def bias_before_the_gain(x, gain, bias, eps=1e-5):
    return layer_norm(x, gain, gain * bias, eps)


def gain_ignored(x, gain, bias, eps=1e-5):
    return layer_norm(x, torch.ones_like(gain), bias, eps)


def never_upcasts(x, gain, bias, eps=1e-5):
    c = x - x.mean(-1, keepdim=True)
    y = c * torch.rsqrt(c.square().mean(-1, keepdim=True) + eps)
    return y * gain + bias


def rounds_before_the_gain(x, gain, bias, eps=1e-5):
    one, none = torch.ones_like(gain), torch.zeros_like(bias)
    return layer_norm(x, one, none, eps) * gain + bias


def mean_in_the_dtype_of_x(x, gain, bias, eps=1e-5):
    c = _wide(x - x.mean(-1, keepdim=True))
    r = torch.rsqrt(c.square().mean(-1, keepdim=True) + eps)
    return (c * r * gain + bias).to(x.dtype)


def always_float32(x, gain, bias, eps=1e-5):
    return layer_norm(x.float(), gain, bias, eps)


def detached_statistics(x, gain, bias, eps=1e-5):
    h = _wide(x)
    var, mean = torch.var_mean(h.detach(), -1, correction=0, keepdim=True)
    return ((h - mean) * torch.rsqrt(var + eps) * gain + bias).to(x.dtype)


VARIANTS = [
    eps_outside_the_root,
    unbiased_variance,
    two_moments,
    statistics_over_all_but_the_batch,
    eps_hard_coded,
    bias_before_the_gain,
    gain_ignored,
    never_upcasts,
    rounds_before_the_gain,
    mean_in_the_dtype_of_x,
    always_float32,
    detached_statistics,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
