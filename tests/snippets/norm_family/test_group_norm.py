"""group_norm: values, gradients, dtypes, groups, and against torch."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.norm_family.family import group_norm
from tests.same_results import on_views
from tests.snippets.norm_family.float64 import (
    SHAPES,
    assert_close,
    channels,
    gradients,
    grouped_reference,
    numbers,
)
from tests.wrong import suite


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
    on_views(numbers((2, 6, 5)), 3, *channels(6), 1e-5),
]


test_right, test_known_wrong = suite(group_norm, CHECKS)


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
