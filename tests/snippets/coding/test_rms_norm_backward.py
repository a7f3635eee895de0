"""rms_norm_backward against autograd through the definition in float64."""

import pytest
import torch

from snippets.coding.rms_norm_backward import rms_norm_backward
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

JUDGED = rms_norm_backward


def _wanted(grad_y, x, gain, eps):
    grad_y, x, gain = (each.detach().double() for each in (grad_y, x, gain))
    x.requires_grad_(), gain.requires_grad_()
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    y = gain * x * x.shape[-1] ** 0.5 / (length**2 + x.shape[-1] * eps).sqrt()
    return torch.autograd.grad(y, (x, gain), grad_y)


def _compare(backward, grad_y, x, gain, eps, rtol, case):
    with unchanged(case, grad_y, x, gain):
        found = backward(grad_y, x, gain, eps)
    results(found, "grad_x grad_gain", case)
    wanted = _wanted(grad_y, x, gain, eps)
    for name, a, b in zip(("grad_x", "grad_gain"), found, wanted, strict=True):
        close(name, a, b, rtol, case=case)
        has_dtype(name, a, x.dtype, case)


def check_shapes(backward):
    for shape in SHAPES:
        x, gain, grad_y = numbers(shape), gains(shape[-1]), numbers(shape, seed=1)
        case = f"x {shape} in float64, gain random"
        _compare(backward, grad_y, x, gain, 1e-6, 1e-9, case)


def check_faint_rows(backward):
    x, gain, grad_y = numbers((3, 9), scale=1e-3), gains(9), numbers((3, 9), seed=1)
    for eps in (1e-5, 1e-6):
        case = f"x of size 1e-3, eps {eps}"
        _compare(backward, grad_y, x, gain, eps, 1e-9, case)


@in_every_dtype
def check_dtypes(backward, dtype):
    x, gain = numbers((2, 5, 33), dtype=dtype), gains(33, dtype=dtype)
    grad_y = numbers((2, 5, 33), dtype=dtype, seed=1)
    rtol, case = 1.5 * ONE_ROUNDING[dtype], f"x (2, 5, 33) in {dtype}"
    _compare(backward, grad_y, x, gain, 1e-6, rtol, case)


def check_many_tokens(backward):
    x = numbers((2048, 5), dtype=torch.bfloat16)
    gain = gains(5, dtype=torch.bfloat16)
    grad_y = (x.sign() * numbers((2048, 5), seed=1).abs()).to(torch.bfloat16)
    rtol, case = 1.5 * ONE_ROUNDING[torch.bfloat16], "2048 tokens in bfloat16"
    _compare(backward, grad_y, x, gain, 1e-6, rtol, case)


CHECKS = [check_dtypes, check_shapes, check_faint_rows, check_many_tokens]


def _parts(grad_y, x, gain, eps):
    wide = torch.promote_types(x.dtype, torch.float32)
    g, h = grad_y.to(wide), x.to(wide)
    r = torch.rsqrt(h.square().mean(-1, keepdim=True) + eps)
    return g, h, r, h * r, g * gain


def _mean(x):
    return x.mean(-1, keepdim=True)


def _finish(grad_x, terms, x):
    grad_gain = terms.reshape(-1, x.shape[-1]).sum(0)
    return grad_x.to(x.dtype), grad_gain.to(x.dtype)


def statistics_are_constants(grad_y, x, gain, eps=1e-6):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * u, g * n, x)


def projects_without_the_gain(grad_y, x, gain, eps=1e-6):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - n * _mean(g * n)), g * n, x)


def sum_for_mean(grad_y, x, gain, eps=1e-6):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - n * (u * n).sum(-1, keepdim=True)), g * n, x)


def projection_has_the_wrong_sign(grad_y, x, gain, eps=1e-6):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u + n * _mean(u * n)), g * n, x)


def mean_of_layer_norm_subtracted(grad_y, x, gain, eps=1e-6):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - _mean(u) - n * _mean(u * n)), g * n, x)


def eps_forgotten(grad_y, x, gain, eps=1e-6):
    g, _, r, n, u = _parts(grad_y, x, gain, 0.0)
    return _finish(r * (u - n * _mean(u * n)), g * n, x)


def gain_averaged_over_tokens(grad_y, x, gain, eps=1e-6):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    rows = x.numel() // x.shape[-1]
    return _finish(r * (u - n * _mean(u * n)), g * n / rows, x)


def gain_from_the_raw_input(grad_y, x, gain, eps=1e-6):
    g, h, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - n * _mean(u * n)), g * h, x)


def gain_of_the_first_sequence(grad_y, x, gain, eps=1e-6):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    first = (g * n)[:1] if x.ndim > 1 else g * n
    return _finish(r * (u - n * _mean(u * n)), first, x)


def all_in_the_dtype_of_x(grad_y, x, gain, eps=1e-6):
    r = torch.rsqrt(_mean(x.square()) + eps)
    n, u = x * r, grad_y * gain
    return _finish(r * (u - n * _mean(u * n)), grad_y * n, x)


def gain_of_one_row_summed(grad_y, x, gain, eps=1e-6):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    total = (g * n).sum(dim=tuple(range(x.ndim - 1)))
    return (r * (u - n * _mean(u * n))).to(x.dtype), total.to(x.dtype)


def gain_added_up_in_low_precision(grad_y, x, gain, eps=1e-6):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    total = torch.zeros_like(gain)
    for row in (g * n).reshape(-1, x.shape[-1]).to(x.dtype):
        total = total + row
    return (r * (u - n * _mean(u * n))).to(x.dtype), total


def overwrites_grad_y(grad_y, x, gain, eps=1e-6):
    out = rms_norm_backward(grad_y, x, gain, eps)
    grad_y.mul_(gain)
    return out


VARIANTS = [
    statistics_are_constants,
    projects_without_the_gain,
    sum_for_mean,
    projection_has_the_wrong_sign,
    mean_of_layer_norm_subtracted,
    eps_forgotten,
    gain_averaged_over_tokens,
    gain_from_the_raw_input,
    gain_of_the_first_sequence,
    all_in_the_dtype_of_x,
    gain_of_one_row_summed,
    gain_added_up_in_low_precision,
    overwrites_grad_y,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
