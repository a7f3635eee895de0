"""group_norm: values, gradients, dtypes, groups, and against torch."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.norm_family.family import group_norm
from snippets.norm_family.normalize import normalize
from tests.snippets.norm_family.float64 import (
    SHAPES,
    assert_close,
    channels,
    gradients,
    grouped_reference,
    numbers,
)


def _per_channel(n, gain, bias, x):
    shape = (1, -1) + (1,) * (x.ndim - 2)
    return (n * gain.reshape(shape) + bias.reshape(shape)).to(x.dtype)


def check_values(norm):
    for shape in SHAPES:
        gain, bias = channels(shape[1])
        for groups in (1, 2, 3, shape[1]):
            for offset, scale, eps in (
                (0.0, 1.0, 1e-5),
                (40.0, 1.0, 1e-2),
                (0, 1e-3, 1e-5),
            ):
                x = numbers(shape, offset=offset, scale=scale)
                y = norm(x, groups, gain, bias, eps)
                expected = grouped_reference(x, groups, gain, bias, eps)
                assert_close(y, expected, 1e-9, 1e-9)


def check_gradients(norm):
    for shape in ((3, 6, 5), (2, 6, 3, 4)):
        inputs = numbers(shape, offset=1.0), *channels(6)
        for groups in (2, 3):
            ours = gradients(lambda x, g, b, k=groups: norm(x, k, g, b, 1e-3), *inputs)
            exact = gradients(
                lambda x, g, b, k=groups: grouped_reference(x, k, g, b, 1e-3), *inputs
            )
            for a, b in zip(ours, exact, strict=True):
                assert_close(a, b, 1e-8, 1e-8 * float(b.abs().max()))


def check_a_large_mean_does_not_cancel(norm):
    x, (gain, bias) = numbers((2, 6, 7), offset=1e6), channels(6)
    y = norm(x, 3, gain, bias, 1e-5)
    assert_close(y, grouped_reference(x, 3, gain, bias, 1e-5), 1e-6, 1e-6)


def check_the_batch_does_not_matter(norm):
    x, (gain, bias) = numbers((4, 6, 5)), channels(6)
    whole = norm(x, 2, gain, bias, 1e-5)
    for i in range(4):
        alone = norm(x[i : i + 1], 2, gain, bias, 1e-5)
        assert_close(alone, whole[i : i + 1], 1e-12, 1e-12)


def check_every_dtype(norm):
    for dtype, unit in (
        (torch.float32, 2e-6),
        (torch.bfloat16, 2**-8),
        (torch.float16, 2**-11),
    ):
        x = numbers((2, 6, 33), offset=4.0, dtype=dtype)
        gain, bias = (each.to(dtype) for each in channels(6))
        y = norm(x, 3, gain, bias, 1e-5)
        assert y.dtype == dtype, f"{dtype} in, {y.dtype} out"
        expected = grouped_reference(x, 3, gain, bias, 1e-5)
        assert_close(y, expected, 1.02 * unit, 2e-6)


def check_input_unchanged(norm):
    x, (gain, bias) = numbers((2, 6, 5)), channels(6)
    before = x.clone()
    norm(x, 2, gain, bias, 1e-5)
    assert torch.equal(x, before), "x was modified"


CHECKS = [
    check_values,
    check_gradients,
    check_a_large_mean_does_not_cancel,
    check_the_batch_does_not_matter,
    check_every_dtype,
    check_input_unchanged,
]


def _grouped(x, groups):
    grouped = x.unflatten(1, (groups, -1))
    return grouped, tuple(range(2, grouped.ndim))


def one_group_always(x, groups, gain, bias, eps=1e-5):
    return group_norm(x, 1, gain, bias, eps)


def one_channel_a_group(x, groups, gain, bias, eps=1e-5):
    return group_norm(x, x.shape[1], gain, bias, eps)


def groups_taken_for_the_group_size(x, groups, gain, bias, eps=1e-5):
    return group_norm(x, x.shape[1] // groups, gain, bias, eps)


def strided_groups(x, groups, gain, bias, eps=1e-5):
    grouped = x.unflatten(1, (-1, groups)).transpose(1, 2)
    n = normalize(grouped, tuple(range(2, grouped.ndim)), eps=eps)
    return _per_channel(n.transpose(1, 2).flatten(1, 2), gain, bias, x)


def statistics_over_the_batch(x, groups, gain, bias, eps=1e-5):
    grouped, axes = _grouped(x, groups)
    return _per_channel(
        normalize(grouped, (0, *axes), eps=eps).flatten(1, 2), gain, bias, x
    )


def statistics_without_positions(x, groups, gain, bias, eps=1e-5):
    grouped, _ = _grouped(x, groups)
    return _per_channel(normalize(grouped, (2,), eps=eps).flatten(1, 2), gain, bias, x)


def mean_not_subtracted(x, groups, gain, bias, eps=1e-5):
    grouped, axes = _grouped(x, groups)
    n = normalize(grouped, axes, centre=False, eps=eps)
    return _per_channel(n.flatten(1, 2), gain, bias, x)


def gain_ignored(x, groups, gain, bias, eps=1e-5):
    return group_norm(x, groups, torch.ones_like(gain), bias, eps)


def one_gain_a_group(x, groups, gain, bias, eps=1e-5):
    first = gain.unflatten(0, (groups, -1))[:, :1].expand(
        groups, gain.numel() // groups
    )
    return group_norm(x, groups, first.flatten(), bias, eps)


def bias_ignored(x, groups, gain, bias, eps=1e-5):
    return group_norm(x, groups, gain, torch.zeros_like(bias), eps)


def bias_before_the_gain(x, groups, gain, bias, eps=1e-5):
    return group_norm(x, groups, gain, bias * gain, eps)


def sample_deviation(x, groups, gain, bias, eps=1e-5):
    grouped, axes = _grouped(x.double(), groups)
    n = grouped[0, 0].numel()
    variance = grouped.var(axes, correction=min(1, n - 1), keepdim=True)
    z = (grouped - grouped.mean(axes, keepdim=True)) * torch.rsqrt(variance + eps)
    return _per_channel(z.flatten(1, 2), gain, bias, x)


def eps_outside_the_root(x, groups, gain, bias, eps=1e-5):
    grouped, axes = _grouped(x.double(), groups)
    deviation = grouped.std(axes, correction=0, keepdim=True)
    z = (grouped - grouped.mean(axes, keepdim=True)) / (deviation + eps)
    return _per_channel(z.flatten(1, 2), gain, bias, x)


def eps_hard_coded(x, groups, gain, bias, eps=1e-5):
    return group_norm(x, groups, gain, bias, 1e-5)


def mean_of_squares_minus_square_of_mean(x, groups, gain, bias, eps=1e-5):
    grouped, axes = _grouped(x.to(torch.promote_types(x.dtype, torch.float32)), groups)
    mean = grouped.mean(axes, keepdim=True)
    variance = (grouped.square().mean(axes, keepdim=True) - mean.square()).clamp_min(0)
    z = (grouped - mean) * torch.rsqrt(variance + eps)
    return _per_channel(z.flatten(1, 2), gain, bias, x)


def detached_statistics(x, groups, gain, bias, eps=1e-5):
    grouped, axes = _grouped(x.to(torch.promote_types(x.dtype, torch.float32)), groups)
    still = grouped.detach()
    mean = still.mean(axes, keepdim=True)
    scale = torch.rsqrt(still.var(axes, correction=0, keepdim=True) + eps)
    return _per_channel(((grouped - mean) * scale).flatten(1, 2), gain, bias, x)


def never_upcasts(x, groups, gain, bias, eps=1e-5):
    grouped, axes = _grouped(x, groups)
    centred = grouped - grouped.mean(axes, keepdim=True)
    z = centred * torch.rsqrt(centred.square().mean(axes, keepdim=True) + eps)
    return _per_channel(z.flatten(1, 2), gain, bias, x)


VARIANTS = [
    one_group_always,
    one_channel_a_group,
    groups_taken_for_the_group_size,
    strided_groups,
    statistics_over_the_batch,
    statistics_without_positions,
    mean_not_subtracted,
    gain_ignored,
    one_gain_a_group,
    bias_ignored,
    bias_before_the_gain,
    sample_deviation,
    eps_outside_the_root,
    eps_hard_coded,
    mean_of_squares_minus_square_of_mean,
    detached_statistics,
    never_upcasts,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(group_norm)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize(
    "shape", [s for s in SHAPES if s[1] == 6 and s != (1, 6, 1)], ids=str
)
def test_equals_torch(shape, groups, dtype):
    x = numbers(shape, offset=1.0, dtype=dtype)
    gain, bias = (each.to(dtype) for each in channels(6))
    module = nn.GroupNorm(groups, 6, eps=1e-3, dtype=dtype)
    module.weight.data, module.bias.data = gain, bias
    ours = gradients(lambda x, g, b: group_norm(x, groups, g, b, 1e-3), x, gain, bias)
    theirs = gradients(
        lambda x, g, b: F.group_norm(x, groups, g, b, 1e-3), x, gain, bias
    )
    tolerance = 1e-10 if dtype == torch.float64 else 2e-4
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype == dtype
        assert_close(a, b, tolerance, tolerance * max(float(b.abs().max()), 0.05))
    assert_close(module(x), ours[0], tolerance, tolerance)
