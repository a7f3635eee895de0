"""instance_norm: values, gradients, dtypes, and against torch in one and two axes."""

import pytest
import torch
from torch import nn

from snippets.norm_family.family import (
    instance_norm,
)
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

SPACES = [shape for shape in SHAPES if len(shape) > 2]


def _reference(x, gain, bias, eps):
    return grouped_reference(x, x.shape[1], gain, bias, eps)


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
    on_views(numbers((2, 6, 5)), *channels(6), 1e-5),
]


test_right, test_known_wrong = suite(instance_norm, CHECKS)


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
