"""fused_conv: one convolution gives what convolution and BatchNorm gave."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.fused_conv import fused_conv
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    close,
    expect,
    gains,
    has_dtype,
    numbers,
    results,
    unchanged,
)
from tests.wrong import rejects

JUDGED = fused_conv
SHAPES = ((5, 5, 3, 3), (3, 7, 1, 1), (8, 2, 3, 1))  # (out, in, kh, kw)


def _inputs(shape, biased):
    d = shape[0]
    given = numbers(shape), numbers((d,), seed=1) if biased else None
    statistics = numbers((d,), seed=2), 0.01 * gains(d, seed=3).abs()
    return *given, gains(d), numbers((d,), seed=4), *statistics


def _compare(fused, given, case):
    weight, bias, gain, shift, mean, var = given
    with unchanged(case, *[each for each in given if each is not None]):
        found = results(fused(*given, 1e-3), "weight bias", case)
    x = numbers((2, weight.shape[1], 6, 5), seed=5)
    before = F.conv2d(x, weight, bias)
    wanted = F.batch_norm(before, mean, var, gain, shift, False, 0.0, 1e-3)
    expect(found[0].shape == weight.shape, case, f"weight is {tuple(found[0].shape)}")
    close("the layer's output", F.conv2d(x, *found), wanted, 1e-9, case=case)


def check_shapes(fused):
    for shape in SHAPES:
        for biased in (True, False):
            words = "with a bias" if biased else "without a bias"
            _compare(
                fused, _inputs(shape, biased), f"weight {shape} in float64, {words}"
            )


def check_views(fused):
    weight, *others = _inputs((4, 6, 3, 3), True)
    turned = weight.to(memory_format=torch.channels_last)
    _compare(fused, (turned, *others), "the weight is channels_last")


def check_bfloat16(fused):
    weight, bias, *norm = _inputs((32, 16, 3, 3), True)
    weight, bias = weight.bfloat16(), bias.bfloat16()
    norm = [each.float() for each in norm]
    case = "weight in bfloat16, norm in float32"
    found = results(fused(weight, bias, *norm, 1e-3), "weight bias", case)
    gain, shift, mean, var = (each.double() for each in norm)
    scale = gain / (var + 1e-3).sqrt()
    exact = weight.double() * scale[:, None, None, None]
    close("the weight", found[0], exact, 2**-8, case=case, rowwise=False)
    exact = (bias.double() - mean) * scale + shift
    close("the bias", found[1], exact, 2**-8, atol=1e-4, case=case, rowwise=False)
    has_dtype("the weight", found[0], torch.bfloat16, case)
    has_dtype("the bias", found[1], torch.bfloat16, case)


check_other_views = on_views(*_inputs((3, 7, 2, 2), True), 1e-3)

CHECKS = [check_shapes, check_views, check_bfloat16, check_other_views]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(fused_conv, CHECKS)
