"""rms_norm_backward against the explicit Jacobian, autograd and torch."""

import pytest
import torch
from torch.nn import functional as F

from snippets.rms_norm.backward import rms_norm_backward
from snippets.rms_norm.reference import rms_norm
from tests.same_results import on_views
from tests.snippets.rms_norm.float64 import (
    SHAPES,
    assert_close,
    gains,
    reference_gradients,
    tokens,
)
from tests.wrong import suite

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
RTOL = {
    torch.float64: 1e-12,
    torch.float32: 4e-6,
    torch.bfloat16: 2**-8 * 1.01,
    torch.float16: 2**-11 * 1.01,
}


def _expect(backward, grad_y, x, gain, eps, rtol):
    expected = reference_gradients(grad_y, x, gain, eps)
    for name, actual, wanted, like in zip(
        ("grad_x", "grad_gain"),
        backward(grad_y, x, gain, eps),
        expected,
        (x, gain),
        strict=True,
    ):
        assert actual.dtype == like.dtype, f"{name}: {actual.dtype}"
        # grad_x cancels along x: rounding is relative to each row's largest.
        size = wanted.abs().amax(-1, keepdim=True).clamp_min(float("1e-30"))
        assert_close(actual / 1.0, wanted, rtol, rtol * size, name)


def check_float64(backward):
    for shape in SHAPES[1:]:
        for offset, eps in ((0.0, 1e-6), (3.0, 1e-2)):
            x, gain = tokens(shape, offset=offset), gains(shape[-1])
            if shape[-1] > 1:
                _expect(backward, tokens(shape, seed=1), x, gain, eps, 1e-10)


def check_every_dtype(backward):
    for dtype in DTYPES:
        x, gain = tokens((2, 5, 33), dtype=dtype), gains(33, dtype=dtype)
        grad_y = tokens((2, 5, 33), seed=1).clamp(-8, 8).to(dtype)
        _expect(backward, grad_y, x, gain, 1e-6, RTOL[dtype])


def check_many_tokens(backward):
    x = tokens((2048, 7), dtype=torch.bfloat16)
    gain = gains(7, dtype=torch.bfloat16)
    grad_y = tokens((2048, 7), seed=1).abs().clamp(0.5, 2).to(torch.bfloat16)
    grad_y = grad_y * x.sign()  # all terms of grad_gain have one sign
    _expect(backward, grad_y, x, gain, 1e-6, RTOL[torch.bfloat16])


def check_tiny_inputs(backward):
    x, gain = tokens((3, 5), scale=1e-4), gains(5)
    for eps in (1e-5, 1e-6, 1e-8):
        _expect(backward, tokens((3, 5), seed=1), x, gain, eps, 1e-10)


def check_wide_gain(backward):
    """A float32 gain gets a float32 gradient, whatever the dtype of x."""
    x, gain = tokens((64, 33), dtype=torch.bfloat16), gains(33, dtype=torch.float32)
    grad_y = tokens((64, 33), seed=1).clamp(-4, 4).bfloat16()
    wanted = reference_gradients(grad_y, x, gain, 1e-6)[1]
    found = backward(grad_y, x, gain, 1e-6)[1]
    assert found.dtype == torch.float32, found.dtype
    assert_close(found, wanted, 1e-5, 1e-5 * float(wanted.abs().max()))


def check_inputs_unchanged(backward):
    inputs = tokens((3, 5), seed=1), tokens((3, 5)), gains(5)
    before = [each.clone() for each in inputs]
    backward(*inputs, 1e-6)
    for each, copy in zip(inputs, before, strict=True):
        assert torch.equal(each, copy), "an input was modified"


CHECKS = [
    check_float64,
    check_every_dtype,
    check_many_tokens,
    check_tiny_inputs,
    check_wide_gain,
    check_inputs_unchanged,
    on_views(tokens((2, 3, 7), seed=1), tokens((2, 3, 7)), gains(7), 1e-5),
]


def _parts(grad_y, x, gain, eps):
    wide = torch.promote_types(x.dtype, torch.float32)
    g, h, w = grad_y.to(wide), x.to(wide), gain.to(wide)
    r = torch.rsqrt(h.square().mean(-1, keepdim=True) + eps)
    return g, h, w, r, h * r, g * w


def _mean(x):
    return x.mean(-1, keepdim=True)


def _finish(grad_x, grad_gain, x, gain):
    grad_gain = grad_gain.reshape(-1, x.shape[-1])
    return grad_x.to(x.dtype), grad_gain.sum(0).to(gain.dtype)


test_right, test_rejects = suite(rms_norm_backward, CHECKS)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_autograd(shape, dtype):
    """The same gradients as autograd through rms_norm and through torch."""
    x = tokens(shape, dtype=dtype).requires_grad_()
    gain = gains(shape[-1], dtype=dtype).requires_grad_()
    grad_y = tokens(shape, seed=1).clamp(-8, 8).to(dtype)
    ours = rms_norm_backward(grad_y, x.detach(), gain.detach())
    unit = torch.finfo(dtype).eps
    for y in (rms_norm(x, gain), F.rms_norm(x, shape[-1:], gain, 1e-6)):
        for a, b in zip(ours, torch.autograd.grad(y, (x, gain), grad_y), strict=True):
            # With one feature grad_x is all but zero: compare with its parts.
            parts = float((gain.abs().max() * grad_y.abs().max()).double().detach())
            floor = (
                unit * parts / float(x.detach().abs().min()) if shape[-1] == 1 else 0
            )
            size = b.double().abs().amax(-1, keepdim=True)
            assert_close(a, b.double(), 4 * unit, 4 * unit * size + 4 * floor)


def test_gradient_is_orthogonal_to_the_input():
    """With eps = 0 the output ignores x's length, so grad_x has no part along x."""
    x, gain = tokens((4, 3, 19), offset=1.0), gains(19)
    grad_x, _ = rms_norm_backward(tokens((4, 3, 19), seed=1), x, gain, eps=0.0)
    cosine = torch.cosine_similarity(grad_x, x, dim=-1)
    assert float(cosine.abs().max()) < 1e-12


def test_gradient_shrinks_with_the_input():
    """Ten times the input, a tenth of the gradient."""
    x, gain, grad_y = tokens((4, 19)), gains(19), tokens((4, 19), seed=1)
    near, _ = rms_norm_backward(grad_y, x, gain, eps=0.0)
    far, _ = rms_norm_backward(grad_y, 10 * x, gain, eps=0.0)
    assert_close(far, near / 10, 1e-9)
