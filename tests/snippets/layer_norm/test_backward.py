"""layer_norm_backward against the explicit Jacobian, autograd and torch."""

import pytest
import torch
from torch.nn import functional as F

from snippets.layer_norm.backward import layer_norm_backward
from tests.snippets.layer_norm.float64 import (
    SHAPES,
    assert_close,
    gains,
    reference_gradients,
    tokens,
)

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
RTOL = {
    torch.float64: 1e-11,
    torch.float32: 4e-6,
    torch.bfloat16: 2**-8 * 1.01,
    torch.float16: 2**-11 * 1.02,
}
NAMES = ("grad_x", "grad_gain", "grad_bias")


def _expect(backward, grad_y, x, gain, eps, rtol):
    expected = reference_gradients(grad_y, x, gain, eps)
    actual = backward(grad_y, x, gain, eps)
    for name, a, b, like in zip(NAMES, actual, expected, (x, gain, gain), strict=True):
        assert a.dtype == like.dtype, f"{name}: {a.dtype}"
        size = b.abs().amax(-1, keepdim=True)
        assert_close(a, b, rtol, rtol * size + 1e-12, name)


def check_float64(backward):
    for shape in SHAPES:
        for offset, eps in ((0.0, 1e-5), (3.0, 1e-2)):
            x, gain = tokens(shape, offset=offset), gains(shape[-1])
            _expect(backward, tokens(shape, seed=1), x, gain, eps, 1e-10)


def check_every_dtype(backward):
    for dtype in DTYPES:
        x, gain = tokens((2, 5, 33), dtype=dtype), gains(33, dtype=dtype)
        grad_y = tokens((2, 5, 33), seed=1).clamp(-4, 4).to(dtype)
        _expect(backward, grad_y, x, gain, 1e-5, RTOL[dtype])


def check_many_tokens(backward):
    x = tokens((2048, 7), dtype=torch.bfloat16)
    gain = gains(7, dtype=torch.bfloat16)
    centred = x.double() - x.double().mean(-1, keepdim=True)
    grad_y = (tokens((2048, 7), seed=1).abs().clamp(0.5, 2) * centred.sign()).bfloat16()
    _expect(backward, grad_y, x, gain, 1e-5, RTOL[torch.bfloat16])


def check_small_spread(backward):
    x, gain = tokens((3, 5), scale=1e-3), gains(5)
    for eps in (1e-5, 1e-6, 1e-8):
        _expect(backward, tokens((3, 5), seed=1), x, gain, eps, 1e-9)


def check_inputs_unchanged(backward):
    inputs = tokens((3, 5), seed=1), tokens((3, 5)), gains(5)
    before = [each.clone() for each in inputs]
    backward(*inputs, 1e-5)
    for each, copy in zip(inputs, before, strict=True):
        assert torch.equal(each, copy), "an input was modified"


CHECKS = [
    check_float64,
    check_every_dtype,
    check_many_tokens,
    check_small_spread,
    check_inputs_unchanged,
]


def _mean(x):
    return x.mean(-1, keepdim=True)


def _parts(grad_y, x, gain, eps):
    wide = torch.promote_types(x.dtype, torch.float32)
    g, h = grad_y.to(wide), x.to(wide)
    c = h - _mean(h)
    r = torch.rsqrt(_mean(c.square()) + eps)
    return g, c, r, c * r, g * gain.to(wide)


def _finish(grad_x, grad_gain, grad_bias, x, gain):
    d = x.shape[-1]
    sums = [
        each.reshape(-1, d).sum(0).to(gain.dtype) for each in (grad_gain, grad_bias)
    ]
    return grad_x.to(x.dtype), *sums


def detached_statistics(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * u, g * n, g, x, gain)


def detached_mean(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - n * _mean(u * n)), g * n, g, x, gain)


def detached_variance(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - _mean(u)), g * n, g, x, gain)


def gain_missing(grad_y, x, gain, eps=1e-5):
    g, _, r, n, _ = _parts(grad_y, x, gain, eps)
    return _finish(r * (g - _mean(g) - n * _mean(g * n)), g * n, g, x, gain)


def gain_missing_in_the_means(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - _mean(g) - n * _mean(g * n)), g * n, g, x, gain)


def gain_after_the_projection(grad_y, x, gain, eps=1e-5):
    g, _, r, n, _ = _parts(grad_y, x, gain, eps)
    grad_x = gain.to(r.dtype) * r * (g - _mean(g) - n * _mean(g * n))
    return _finish(grad_x, g * n, g, x, gain)


def sums_for_means(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    total, along = u.sum(-1, keepdim=True), (u * n).sum(-1, keepdim=True)
    return _finish(r * (u - total - n * along), g * n, g, x, gain)


def divides_by_d_minus_one(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    along = (u * n).sum(-1, keepdim=True) / max(x.shape[-1] - 1, 1)
    return _finish(r * (u - _mean(u) - n * along), g * n, g, x, gain)


def term_added(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - _mean(u) + n * _mean(u * n)), g * n, g, x, gain)


def scale_forgotten(grad_y, x, gain, eps=1e-5):
    g, _, _, n, u = _parts(grad_y, x, gain, eps)
    return _finish(u - _mean(u) - n * _mean(u * n), g * n, g, x, gain)


def centred_for_normalized(grad_y, x, gain, eps=1e-5):
    g, c, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - _mean(u) - c * _mean(u * c)), g * n, g, x, gain)


def input_not_centred(grad_y, x, gain, eps=1e-5):
    g, _, r, _, u = _parts(grad_y, x, gain, eps)
    n = x.to(r.dtype) * r
    return _finish(r * (u - _mean(u) - n * _mean(u * n)), g * n, g, x, gain)


def eps_forgotten(grad_y, x, gain, eps=1e-5):
    g, c, _, _, u = _parts(grad_y, x, gain, eps)
    r = torch.rsqrt(_mean(c.square()).clamp_min(1e-30))
    n = c * r
    return _finish(r * (u - _mean(u) - n * _mean(u * n)), g * n, g, x, gain)


def grad_gain_of_the_centred(grad_y, x, gain, eps=1e-5):
    g, c, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - _mean(u) - n * _mean(u * n)), g * c, g, x, gain)


def grad_bias_scaled_by_the_gain(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    return _finish(r * (u - _mean(u) - n * _mean(u * n)), g * n, u, x, gain)


def parameters_averaged_over_tokens(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    rows = x.numel() // x.shape[-1]
    grad_x = r * (u - _mean(u) - n * _mean(u * n))
    return _finish(grad_x, g * n / rows, g / rows, x, gain)


def first_sequence_alone(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    grad_x = r * (u - _mean(u) - n * _mean(u * n))
    first = slice(0, 1) if x.ndim > 1 else slice(None)
    return _finish(grad_x, (g * n)[first], g[first], x, gain)


def parameters_in_low_precision(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    grad_x, _, _ = _finish(r * (u - _mean(u) - n * _mean(u * n)), g, g, x, gain)
    sums = []
    for terms in (g * n, g):
        total = torch.zeros_like(gain)
        for row in terms.reshape(-1, x.shape[-1]).to(gain.dtype):
            total = total + row  # rounds after every token
        sums.append(total)
    return grad_x, *sums


def overwrites_grad_y(grad_y, x, gain, eps=1e-5):
    g, _, r, n, u = _parts(grad_y, x, gain, eps)
    out = _finish(r * (u - _mean(u) - n * _mean(u * n)), g * n, g, x, gain)
    grad_y.copy_(u)
    return out


VARIANTS = [
    detached_statistics,
    detached_mean,
    detached_variance,
    gain_missing,
    gain_missing_in_the_means,
    gain_after_the_projection,
    sums_for_means,
    divides_by_d_minus_one,
    term_added,
    scale_forgotten,
    centred_for_normalized,
    input_not_centred,
    eps_forgotten,
    grad_gain_of_the_centred,
    grad_bias_scaled_by_the_gain,
    parameters_averaged_over_tokens,
    first_sequence_alone,
    parameters_in_low_precision,
    overwrites_grad_y,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(layer_norm_backward)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
def test_equals_torch(dtype):
    x = tokens((4, 3, 31), offset=2.0, dtype=dtype).requires_grad_()
    gain = gains(31, dtype=dtype).requires_grad_()
    bias = torch.zeros(31, dtype=dtype, requires_grad=True)
    grad_y = tokens((4, 3, 31), seed=1, dtype=dtype)
    y = F.layer_norm(x, (31,), gain, bias, 1e-5)
    theirs = torch.autograd.grad(y, (x, gain, bias), grad_y)
    ours = layer_norm_backward(grad_y, x.detach(), gain.detach())
    for a, b in zip(ours, theirs, strict=True):
        size = b.detach().double().abs().amax(-1, keepdim=True)
        assert_close(a, b.detach().double(), RTOL[dtype], RTOL[dtype] * size)


@pytest.mark.parametrize("scale", [1.0, 3e-3, 1e-4])
def test_the_two_orthogonalities(scale):
    """Exact to the all-ones direction; the share eps / (var + eps) along c stays."""
    eps = 1e-5
    x, gain = tokens((4, 3, 19), scale=scale, offset=1.0), gains(19)
    grad_y = tokens((4, 3, 19), seed=1)
    grad_x, _, _ = layer_norm_backward(grad_y, x, gain, eps)
    size = grad_x.abs().amax(-1)
    assert float((grad_x.sum(-1).abs() / size).max()) < 1e-10
    c = x - x.mean(-1, keepdim=True)
    variance = c.square().mean(-1)
    left = (grad_x * c).sum(-1)
    before = (grad_y * gain * c).sum(-1) * torch.rsqrt(variance + eps)
    assert_close(left, before * eps / (variance + eps), 1e-9, 1e-9 * size.max())


def test_gradient_shrinks_with_the_input():
    x, gain, grad_y = tokens((4, 19)), gains(19), tokens((4, 19), seed=1)
    near, _, _ = layer_norm_backward(grad_y, x, gain, eps=0.0)
    far, _, _ = layer_norm_backward(grad_y, 10 * x, gain, eps=0.0)
    assert_close(far, near / 10, 1e-9, 1e-12)


def test_two_features_have_no_gradient():
    """With d = 2 and no eps the output is a sign."""
    x, gain = tokens((5, 2)), gains(2)
    grad_x, _, _ = layer_norm_backward(tokens((5, 2), seed=1), x, gain, eps=0.0)
    assert float((grad_x.abs() * x.std(-1, keepdim=True)).max()) < 1e-12
