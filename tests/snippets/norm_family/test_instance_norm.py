"""instance_norm: values, gradients, dtypes, and against torch in one and two axes."""

import pytest
import torch
from torch import nn

from snippets.norm_family.family import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
)
from snippets.norm_family.normalize import normalize
from tests.snippets.norm_family.float64 import (
    SHAPES,
    assert_close,
    channels,
    gradients,
    grouped_reference,
    numbers,
)

SPACES = [shape for shape in SHAPES if len(shape) > 2]


def _reference(x, gain, bias, eps):
    return grouped_reference(x, x.shape[1], gain, bias, eps)


def _per_channel(n, gain, bias, x):
    shape = (1, -1) + (1,) * (x.ndim - 2)
    return (n * gain.reshape(shape) + bias.reshape(shape)).to(x.dtype)


def check_values(norm):
    for shape in SPACES:
        gain, bias = channels(shape[1])
        for offset, scale, eps in (
            (0.0, 1.0, 1e-5),
            (40.0, 1.0, 1e-2),
            (0.0, 1e-3, 1e-5),
        ):
            x = numbers(shape, offset=offset, scale=scale)
            expected = _reference(x, gain, bias, eps)
            assert_close(norm(x, gain, bias, eps), expected, 1e-9, 1e-9)


def check_gradients(norm):
    for shape in ((3, 6, 5), (2, 6, 3, 4)):
        inputs = numbers(shape, offset=1.0), *channels(6)
        ours = gradients(lambda *each: norm(*each, 1e-3), *inputs)
        exact = gradients(lambda *each: _reference(*each, 1e-3), *inputs)
        for a, b in zip(ours, exact, strict=True):
            assert_close(a, b, 1e-8, 1e-8 * float(b.abs().max()))


def check_a_large_mean_does_not_cancel(norm):
    x, (gain, bias) = numbers((2, 6, 7), offset=1e6), channels(6)
    y = norm(x, gain, bias, 1e-5)
    assert_close(y, _reference(x, gain, bias, 1e-5), 1e-6, 1e-6)


def check_contrast_and_brightness_are_gone(norm):
    """What style transfer wants: each channel's scale and offset do not matter."""
    x, (gain, bias) = numbers((2, 6, 3, 4)), channels(6)
    contrast = 2 ** numbers((2, 6, 1, 1), seed=3).clamp(-3, 3)
    changed = contrast * x + numbers((2, 6, 1, 1), seed=4)
    before, after = (norm(each, gain, bias, 0.0) for each in (x, changed))
    assert_close(after, before, 1e-8, 1e-8)


def check_every_dtype(norm):
    for dtype, unit in (
        (torch.float32, 2e-6),
        (torch.bfloat16, 2**-8),
        (torch.float16, 2**-11),
    ):
        x = numbers((2, 6, 33), offset=4.0, dtype=dtype)
        gain, bias = (each.to(dtype) for each in channels(6))
        y = norm(x, gain, bias, 1e-5)
        assert y.dtype == dtype, f"{dtype} in, {y.dtype} out"
        assert_close(y, _reference(x, gain, bias, 1e-5), 1.02 * unit, 4e-6)


def check_input_unchanged(norm):
    x, (gain, bias) = numbers((2, 6, 5)), channels(6)
    before = x.clone()
    norm(x, gain, bias, 1e-5)
    assert torch.equal(x, before), "x was modified"


CHECKS = [
    check_values,
    check_gradients,
    check_a_large_mean_does_not_cancel,
    check_contrast_and_brightness_are_gone,
    check_every_dtype,
    check_input_unchanged,
]


def statistics_over_the_batch(x, gain, bias, eps=1e-5):
    return batch_norm(x, gain, bias, eps)


def statistics_over_the_channels(x, gain, bias, eps=1e-5):
    return layer_norm(x.movedim(1, -1), gain, bias, eps).movedim(-1, 1)


def statistics_over_the_whole_sample(x, gain, bias, eps=1e-5):
    return group_norm(x, 1, gain, bias, eps)


def last_axis_only(x, gain, bias, eps=1e-5):
    axis = -1 if x.ndim > 3 else 1
    return _per_channel(normalize(x, (axis,), eps=eps), gain, bias, x)


def mean_not_subtracted(x, gain, bias, eps=1e-5):
    n = normalize(x, tuple(range(2, x.ndim)), centre=False, eps=eps)
    return _per_channel(n, gain, bias, x)


def only_the_mean_subtracted(x, gain, bias, eps=1e-5):
    n = x - x.mean(tuple(range(2, x.ndim)), keepdim=True)
    return _per_channel(n, gain, bias, x)


def no_affine(x, gain, bias, eps=1e-5):
    return normalize(x, tuple(range(2, x.ndim)), eps=eps).to(x.dtype)


def gain_ignored(x, gain, bias, eps=1e-5):
    return instance_norm(x, torch.ones_like(gain), bias, eps)


def bias_ignored(x, gain, bias, eps=1e-5):
    return instance_norm(x, gain, torch.zeros_like(bias), eps)


def sample_deviation(x, gain, bias, eps=1e-5):
    axes, h = tuple(range(2, x.ndim)), x.double()
    correction = 1 if h[0, 0].numel() > 1 else 0
    variance = h.var(axes, correction=correction, keepdim=True)
    z = (h - h.mean(axes, keepdim=True)) * torch.rsqrt(variance + eps)
    return _per_channel(z, gain, bias, x)


def eps_outside_the_root(x, gain, bias, eps=1e-5):
    axes, h = tuple(range(2, x.ndim)), x.double()
    z = (h - h.mean(axes, keepdim=True)) / (
        h.std(axes, correction=0, keepdim=True) + eps
    )
    return _per_channel(z, gain, bias, x)


def eps_never_zero(x, gain, bias, eps=1e-5):
    return instance_norm(x, gain, bias, eps + 1e-5)


def mean_of_squares_minus_square_of_mean(x, gain, bias, eps=1e-5):
    axes, h = tuple(range(2, x.ndim)), x.to(torch.promote_types(x.dtype, torch.float32))
    mean = h.mean(axes, keepdim=True)
    variance = (h.square().mean(axes, keepdim=True) - mean.square()).clamp_min(0)
    return _per_channel((h - mean) * torch.rsqrt(variance + eps), gain, bias, x)


def detached_statistics(x, gain, bias, eps=1e-5):
    axes, h = tuple(range(2, x.ndim)), x.to(torch.promote_types(x.dtype, torch.float32))
    mean = h.detach().mean(axes, keepdim=True)
    variance = h.detach().var(axes, correction=0, keepdim=True)
    return _per_channel((h - mean) * torch.rsqrt(variance + eps), gain, bias, x)


def never_upcasts(x, gain, bias, eps=1e-5):
    axes = tuple(range(2, x.ndim))
    centred = x - x.mean(axes, keepdim=True)
    z = centred * torch.rsqrt(centred.square().mean(axes, keepdim=True) + eps)
    return _per_channel(z, gain, bias, x)


def overwrites_its_input(x, gain, bias, eps=1e-5):
    y = instance_norm(x, gain, bias, eps)
    x.data.copy_(y.detach())
    return y


VARIANTS = [
    statistics_over_the_batch,
    statistics_over_the_channels,
    statistics_over_the_whole_sample,
    last_axis_only,
    mean_not_subtracted,
    only_the_mean_subtracted,
    no_affine,
    gain_ignored,
    bias_ignored,
    sample_deviation,
    eps_outside_the_root,
    eps_never_zero,
    mean_of_squares_minus_square_of_mean,
    detached_statistics,
    never_upcasts,
    overwrites_its_input,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(instance_norm)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.InstanceNorm1d, (3, 6, 5)),
        (nn.InstanceNorm1d, (1, 6, 31)),
        (nn.InstanceNorm2d, (2, 6, 3, 4)),
    ],
)
def test_equals_torch(module, shape):
    gain, bias = channels(6)
    theirs = module(6, eps=1e-3, affine=True, dtype=torch.float64)
    x = numbers(shape, offset=1.0)

    def library(x, gain, bias):
        parameters = {"weight": gain, "bias": bias}
        return torch.func.functional_call(theirs, parameters, (x,))

    ours = gradients(lambda *each: instance_norm(*each, 1e-3), x, gain, bias)
    for a, b in zip(ours, gradients(library, x, gain, bias), strict=True):
        assert_close(a, b, 1e-10, 1e-10 * float(b.abs().max()))
