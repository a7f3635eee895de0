"""image_batch_norm against torch's BatchNorm2d: outputs, statistics, gradients."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.image_batch_norm import image_batch_norm
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    by_hand,
    close,
    expect,
    gains,
    gradients,
    has_dtype,
    numbers,
    unchanged,
    updated,
)
from tests.wrong import rejects

JUDGED = image_batch_norm
SHAPES = ((2, 3, 4, 5), (4, 4, 4, 4), (1, 5, 2, 3))


def _inputs(shape, dtype=torch.float64):
    wide, d = torch.promote_types(dtype, torch.float32), shape[1]
    x = numbers(shape, offset=2.0, dtype=dtype)
    running = numbers((d,), seed=2, dtype=wide), gains(d, dtype=wide).abs()
    return x, gains(d, dtype=wide), gains(d, seed=1, dtype=wide), *running


def _wanted(x, gain, bias, mean, var, training, momentum, eps):
    x, gain, bias = (each.double() for each in (x, gain, bias))
    mean, var = mean.double().clone(), var.double().clone()
    y = F.batch_norm(x, mean, var, gain, bias, training, momentum, eps)
    return y, mean, var


def _compare(norm, inputs, training, momentum, rtol, case):
    *given, mean, var = inputs
    wanted = _wanted(*inputs, training, momentum, 1e-3)
    ours = mean.clone(), var.clone()
    with unchanged(case, *given):
        y = norm(*given, *ours, training, momentum, 1e-3)
    has_dtype("y", y, inputs[0].dtype, case)
    close("y", y, wanted[0], rtol, case=case)
    names, rtol = ("running_mean", "running_var"), 1e-4 if rtol > 1e-9 else rtol
    for name, a, before, b in zip(names, ours, (mean, var), wanted[1:], strict=True):
        updated(name, a, before, b, rtol, case)


def _trained(norm, x, gain, bias):
    """A step from statistics of its own: the output, and what they are afterwards."""
    running = torch.zeros_like(gain), torch.ones_like(gain)
    return norm(x, gain, bias, *running, True, 0.1, 1e-3), *running


@by_hand
def check_training(norm):
    for shape in SHAPES:
        for momentum in (0.1, 0.3):
            case = f"training, x {shape} in float64, momentum {momentum}"
            _compare(norm, _inputs(shape), True, momentum, 1e-9, case)


def check_evaluation(norm):
    for shape in (*SHAPES, (1, 3, 1, 1)):
        case = f"evaluation, x {shape} in float64"
        _compare(norm, _inputs(shape), False, 0.1, 1e-9, case)


def check_views(norm):
    x, *others = _inputs((3, 4, 4, 5))
    turned = x.to(memory_format=torch.channels_last)
    case = "training, x is channels_last"
    _compare(norm, (turned, *others), True, 0.1, 1e-9, case)
    part = numbers((6, 4, 8, 5), seed=3)[::2, :, 1::2]
    case = "training, x is a part of a tensor"
    _compare(norm, (part, *others), True, 0.1, 1e-9, case)


def check_bfloat16(norm):
    for training in (True, False):
        case = f"x in bfloat16, training is {training}"
        inputs = _inputs((4, 3, 5, 4), torch.bfloat16)
        _compare(norm, inputs, training, 0.1, 2**-8, case)


def check_large_mean(norm):
    x, *others = _inputs((4, 3, 5, 2), torch.float32)
    case = "training, float32 with mean 3000"
    _compare(norm, (x + 3000, *others), True, 0.1, 1e-2, case)


def check_gradients(norm):
    for training in (True, False):
        *given, mean, var = _inputs((2, 3, 4, 2))
        for each in given:
            each.requires_grad_()
        grad_y = numbers((2, 3, 4, 2), seed=1)
        case = f"gradients, training is {training}"
        exact = _wanted(*given, mean, var, training, 0.1, 1e-5)[0]
        exact = torch.autograd.grad(exact, given, grad_y)
        y = norm(*given, mean, var, training, 0.1, 1e-5)
        for name, kept in (("mean", mean), ("var", var)):
            alive = f"running_{name} keeps the graph alive"
            expect(not kept.requires_grad, case, alive)
        ours = gradients(y, given, grad_y, case)
        for name, a, b in zip(("x", "gain", "bias"), ours, exact, strict=True):
            close(f"gradient of {name}", a, b, case=case)


check_other_views = on_views(*_inputs((4, 3, 5, 2))[:3], call=_trained)

CHECKS = [
    check_training,
    check_evaluation,
    check_views,
    check_bfloat16,
    check_large_mean,
    check_gradients,
    check_other_views,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(image_batch_norm, CHECKS)
