"""The hand-written norms are the norms they claim to be, in value and gradient."""

import pytest
import torch

from snippets.speed import handwritten
from tests.same_results import on_views
from tests.wrong import rejects

SHAPES = [(1,), (3,), (5, 7), (1, 1), (2, 3, 13), (2, 1, 3, 31), (4, 4096)]
EPS = 1e-5
LAYER_NORMS = [handwritten.hand_layer_norm, handwritten.hand_layer_norm_without_var]


def _inputs(shape, dtype=torch.float64, scale=1.0, offset=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = (torch.randn(shape, generator=generator, dtype=torch.float64) + offset) * scale
    gain = 1 + torch.randn(shape[-1], generator=generator, dtype=torch.float64)
    bias = torch.randn(shape[-1], generator=generator, dtype=torch.float64)
    upstream = torch.randn(shape, generator=generator, dtype=torch.float64)
    return [t.to(dtype) for t in (x, gain, bias, upstream)]


def layer_norm_float64(x, gain, bias, eps=EPS):
    """LayerNorm from sums alone, in float64."""
    x, gain, bias = x.double(), gain.double(), bias.double()
    d = x.shape[-1]
    centred = x - x.sum(-1, keepdim=True) / d
    return (
        centred * ((centred**2).sum(-1, keepdim=True) / d + eps) ** -0.5 * gain + bias
    )


def rms_norm_float64(x, gain, eps=EPS):
    """RMSNorm from sums alone, in float64."""
    x, gain = x.double(), gain.double()
    return x * ((x**2).sum(-1, keepdim=True) / x.shape[-1] + eps) ** -0.5 * gain


def _gradients(function, tensors, upstream):
    leaves = [t.clone().requires_grad_() for t in tensors]
    y = function(*leaves)
    return y.detach(), torch.autograd.grad(y, leaves, upstream.to(y.dtype))


def _compare(function, reference, tensors, upstream, rtol, atol):
    kept = [t.clone() for t in tensors]
    y, gradients = _gradients(function, tensors, upstream)
    want, want_gradients = _gradients(
        reference, [t.double() for t in tensors], upstream
    )
    for tensor, before in zip(tensors, kept, strict=True):
        assert torch.equal(tensor, before), "input was modified"
    assert y.dtype == tensors[0].dtype
    torch.testing.assert_close(y.double(), want, rtol=rtol, atol=atol)
    for got, expected in zip(gradients, want_gradients, strict=True):
        torch.testing.assert_close(
            got.double(), expected, rtol=rtol, atol=atol * (1 + expected.abs().max())
        )


# Widths of 1: LayerNorm's output is the bias whatever x is.
CASES = [
    dict(scale=1.0, offset=0.0),
    dict(scale=1.0, offset=30.0),
    dict(scale=1e-3, offset=1.0),  # eps matters
    dict(scale=1e3, offset=0.0),
]


def check_layer_norm_float64(variant):
    for shape in SHAPES:
        for case in CASES:
            *tensors, upstream = _inputs(shape, **case)
            _compare(variant, layer_norm_float64, tensors, upstream, 1e-9, 1e-9)


def check_layer_norm_float32(variant):
    for shape in SHAPES:
        *tensors, upstream = _inputs(shape, torch.float32, scale=3.0, offset=0.5)
        _compare(variant, layer_norm_float64, tensors, upstream, 2e-4, 2e-4)


def check_layer_norm_large_offset(variant):
    x, gain, bias, _ = _inputs((6, 257), torch.float32, offset=300.0)
    want = layer_norm_float64(x, gain, bias)
    y = variant(x, gain, bias).double()
    torch.testing.assert_close(y, want, rtol=5e-4, atol=5e-4)


def check_layer_norm_dtypes(variant):
    for dtype in (torch.float16, torch.bfloat16):
        x, gain, bias, _ = _inputs((5, 64), dtype, offset=0.5)
        y = variant(x, gain, bias)
        assert y.dtype == dtype
        want = layer_norm_float64(x, gain, bias)
        bound = 20 * torch.finfo(dtype).eps
        torch.testing.assert_close(y.double(), want, rtol=bound, atol=bound)


def check_rms_norm_float32(variant):
    # hand_rms_norm computes in float32 whatever comes in.
    for shape in SHAPES:
        for case in CASES:
            x, gain, _, upstream = _inputs(shape, torch.float32, **case)
            _compare(variant, rms_norm_float64, [x, gain], upstream, 1e-4, 1e-5)


def check_rms_norm_dtypes(variant):
    for dtype in (torch.float16, torch.bfloat16):
        x, gain, _, _ = _inputs((5, 64), dtype, offset=0.5, scale=300.0)
        y = variant(x, gain)  # squares overflow float16
        assert y.dtype == dtype
        want = rms_norm_float64(x, gain)
        bound = 2 * torch.finfo(dtype).eps
        torch.testing.assert_close(y.double(), want, rtol=bound, atol=bound)


LAYER_NORM_CHECKS = [
    check_layer_norm_float64,
    check_layer_norm_float32,
    check_layer_norm_large_offset,
    check_layer_norm_dtypes,
    on_views(*_inputs((2, 3, 7), torch.float32)[:3], EPS),
]
RMS_NORM_CHECKS = [
    check_rms_norm_float32,
    check_rms_norm_dtypes,
    on_views(*_inputs((2, 3, 7), torch.float32)[:2], EPS),
]


@pytest.mark.parametrize("check", LAYER_NORM_CHECKS)
@pytest.mark.parametrize("norm", LAYER_NORMS)
def test_layer_norms(norm, check):
    check(norm)


@pytest.mark.parametrize("check", RMS_NORM_CHECKS)
def test_rms_norm(check):
    check(handwritten.hand_rms_norm)


@pytest.mark.parametrize("norm", LAYER_NORMS)
def test_layer_norms_equal_torch(norm):
    x, gain, bias, _ = _inputs((7, 129), torch.float32, offset=2.0)
    want = torch.nn.functional.layer_norm(x, (129,), gain, bias, EPS)
    torch.testing.assert_close(norm(x, gain, bias, EPS), want, rtol=1e-5, atol=1e-5)
    other = torch.nn.functional.layer_norm(x, (129,), gain, bias, 0.5)
    torch.testing.assert_close(norm(x, gain, bias, 0.5), other, rtol=1e-5, atol=1e-5)


def test_rms_norm_equals_torch():
    x, gain, _, _ = _inputs((7, 129), torch.float32, offset=2.0)
    for eps in (EPS, 0.5):
        want = torch.nn.functional.rms_norm(x, (129,), gain, eps)
        got = handwritten.hand_rms_norm(x, gain, eps)
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


# Wrong implementations that readers meet ----------------------------------


test_rejects_layer_norm = rejects(handwritten.hand_layer_norm, LAYER_NORM_CHECKS)


test_rejects_rms_norm = rejects(handwritten.hand_rms_norm, RMS_NORM_CHECKS)
