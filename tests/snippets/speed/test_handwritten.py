"""The hand-written norms are the norms they claim to be, in value and gradient."""

import pytest
import torch

from snippets.speed import handwritten

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
]
RMS_NORM_CHECKS = [check_rms_norm_float32, check_rms_norm_dtypes]


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


def _moments(x):
    return x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)


def unbiased_variance(x, gain, bias, eps=EPS):
    var = x.var(-1, keepdim=True, unbiased=x.shape[-1] > 1)
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(var + eps) * gain + bias


def eps_outside_the_root(x, gain, bias, eps=EPS):
    mean, var = _moments(x)
    return (x - mean) / (torch.sqrt(var) + eps) * gain + bias


def no_eps(x, gain, bias, eps=EPS):
    mean, var = _moments(x)
    return (x - mean) / torch.sqrt(var + 1e-300) * gain + bias


def no_centring(x, gain, bias, eps=EPS):
    _, var = _moments(x)
    return x / torch.sqrt(var + eps) * gain + bias


def root_mean_square_for_the_deviation(x, gain, bias, eps=EPS):
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + eps) * gain + bias


def statistics_over_the_first_axis(x, gain, bias, eps=EPS):
    mean, var = x.mean(0, keepdim=True), x.var(0, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(var + eps) * gain + bias


def statistics_over_everything(x, gain, bias, eps=EPS):
    return (x - x.mean()) / torch.sqrt(x.var(unbiased=False) + eps) * gain + bias


def difference_of_squares(x, gain, bias, eps=EPS):
    mean = x.mean(-1, keepdim=True)
    var = x.pow(2).mean(-1, keepdim=True) - mean.pow(2)
    return (x - mean) / torch.sqrt(var.clamp(min=0) + eps) * gain + bias


def detached_statistics(x, gain, bias, eps=EPS):
    mean, var = _moments(x.detach())
    return (x - mean) / torch.sqrt(var + eps) * gain + bias


def bias_before_the_gain(x, gain, bias, eps=EPS):
    mean, var = _moments(x)
    return ((x - mean) / torch.sqrt(var + eps) + bias) * gain


def bias_left_out(x, gain, bias, eps=EPS):
    mean, var = _moments(x)
    return (x - mean) / torch.sqrt(var + eps) * gain + 0 * bias


def float32_out(x, gain, bias, eps=EPS):
    mean, var = _moments(x.float() if x.dtype.itemsize == 2 else x)
    return (x - mean) / torch.sqrt(var + eps) * gain + bias


WRONG_LAYER_NORMS = [
    unbiased_variance,
    eps_outside_the_root,
    no_eps,
    no_centring,
    root_mean_square_for_the_deviation,
    statistics_over_the_first_axis,
    statistics_over_everything,
    difference_of_squares,
    detached_statistics,
    bias_before_the_gain,
    bias_left_out,
    float32_out,
]


def rms_eps_outside(x, gain, eps=EPS):
    wide = x.float()
    root = wide.pow(2).mean(-1, keepdim=True).sqrt() + eps
    return (wide / root).type_as(x) * gain


def rms_of_the_sum(x, gain, eps=EPS):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).sum(-1, keepdim=True) + eps)).type_as(
        x
    ) * gain


def rms_without_upcast(x, gain, eps=EPS):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * gain


def rms_keeps_float32(x, gain, eps=EPS):
    wide = x.float()
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * gain


def rms_of_the_deviation(x, gain, eps=EPS):
    wide = x.float()
    var = wide.var(-1, keepdim=True, unbiased=False)
    return (wide * torch.rsqrt(var + eps)).type_as(x) * gain


def rms_gain_left_out(x, gain, eps=EPS):
    wide = x.float()
    y = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return y.type_as(x) + 0 * gain


def rms_detached(x, gain, eps=EPS):
    wide = x.float()
    root = torch.rsqrt(wide.detach().pow(2).mean(-1, keepdim=True) + eps)
    return (wide * root).type_as(x) * gain


def rms_mean_absolute(x, gain, eps=EPS):
    wide = x.float()
    return (wide / (wide.abs().mean(-1, keepdim=True) + eps)).type_as(x) * gain


WRONG_RMS_NORMS = [
    rms_eps_outside,
    rms_of_the_sum,
    rms_without_upcast,
    rms_keeps_float32,
    rms_of_the_deviation,
    rms_gain_left_out,
    rms_detached,
    rms_mean_absolute,
]


@pytest.mark.parametrize("wrong", WRONG_LAYER_NORMS, ids=lambda f: f.__name__)
def test_rejects_layer_norm(wrong, known_wrong):
    known_wrong.rejected_by(LAYER_NORM_CHECKS, wrong)


@pytest.mark.parametrize("wrong", WRONG_RMS_NORMS, ids=lambda f: f.__name__)
def test_rejects_rms_norm(wrong, known_wrong):
    known_wrong.rejected_by(RMS_NORM_CHECKS, wrong)
