"""layer_norm_backward against the explicit Jacobian, autograd and torch."""

import pytest
import torch
from torch.nn import functional as F

from snippets.layer_norm.backward import layer_norm_backward
from tests.same_results import on_views
from tests.snippets.layer_norm.float64 import (
    SHAPES,
    assert_close,
    gains,
    reference_gradients,
    tokens,
)
from tests.wrong import suite

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


def check_wide_gain(backward):
    """A float32 gain gets a float32 gradient, whatever the dtype of x."""
    x, gain = tokens((64, 33), dtype=torch.bfloat16), gains(33, dtype=torch.float32)
    grad_y = tokens((64, 33), seed=1).clamp(-4, 4).bfloat16()
    wanted = reference_gradients(grad_y, x, gain, 1e-5)[1]
    found = backward(grad_y, x, gain, 1e-5)[1]
    assert found.dtype == torch.float32, found.dtype
    assert_close(found, wanted, 1e-5, 1e-5 * float(wanted.abs().max()))


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
    check_wide_gain,
    check_inputs_unchanged,
    on_views(tokens((2, 3, 7), seed=1), tokens((2, 3, 7)), gains(7), 1e-5),
]


test_right, test_known_wrong = suite(layer_norm_backward, CHECKS)


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
