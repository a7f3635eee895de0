"""batch_norm against torch's BatchNorm1d: outputs, statistics, gradients."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.batch_norm import batch_norm
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

JUDGED = batch_norm


def _inputs(n, d, dtype=torch.float64):
    wide = torch.promote_types(dtype, torch.float32)
    x = numbers((n, d), offset=2.0, dtype=dtype)
    running = numbers((d,), seed=2, dtype=wide), gains(d, dtype=wide).abs()
    return x, gains(d, dtype=wide), gains(d, seed=1, dtype=wide), *running


def _wanted(x, gain, bias, mean, var, training, momentum, eps):
    wide = (each.double() for each in (x, gain, bias))
    x, gain, bias = wide
    mean, var = mean.double().clone(), var.double().clone()
    y = F.batch_norm(x, mean, var, gain, bias, training, momentum, eps)
    return y, mean, var


def _compare(batch_norm, inputs, training, momentum, rtol, case):
    *given, mean, var = inputs
    wanted = _wanted(*inputs, training, momentum, 1e-3)
    ours = mean.clone(), var.clone()
    with unchanged(case, *given):
        y = batch_norm(*given, *ours, training, momentum, 1e-3)
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
def check_training(batch_norm):
    for n in (2, 5, 33):
        for momentum in (0.1, 0.3):
            case = f"training, {n} samples in float64, momentum {momentum}"
            _compare(batch_norm, _inputs(n, 4), True, momentum, 1e-9, case)


def check_evaluation(batch_norm):
    for n in (1, 6):
        case = f"evaluation, {n} samples in float64"
        _compare(batch_norm, _inputs(n, 4), False, 0.1, 1e-9, case)


def check_bfloat16(batch_norm):
    for training in (True, False):
        case = f"x in bfloat16, training is {training}"
        _compare(batch_norm, _inputs(64, 4, torch.bfloat16), training, 0.1, 2**-8, case)


def check_large_mean(batch_norm):
    x, *others = _inputs(40, 4, torch.float32)
    case = "training, float32 with mean 3000"
    _compare(batch_norm, (x + 3000, *others), True, 0.1, 1e-2, case)


def check_single_sample(batch_norm):
    try:
        batch_norm(*_inputs(1, 4), True)
    except ValueError:
        return
    expect(False, "training with one sample", "no ValueError")


def check_gradients(batch_norm):
    for training in (True, False):
        *given, mean, var = _inputs(5, 4)
        for each in given:
            each.requires_grad_()
        grad_y, case = numbers((5, 4), seed=1), f"gradients, training is {training}"
        exact = _wanted(*given, mean, var, training, 0.1, 1e-5)[0]
        exact = torch.autograd.grad(exact, given, grad_y)
        y = batch_norm(*given, mean, var, training, 0.1, 1e-5)
        for name, kept in (("mean", mean), ("var", var)):
            alive = f"running_{name} keeps the graph alive"
            expect(not kept.requires_grad, case, alive)
        ours = gradients(y, given, grad_y, case)
        for name, a, b in zip(("x", "gain", "bias"), ours, exact, strict=True):
            close(f"gradient of {name}", a, b, case=case)


check_views = on_views(*_inputs(5, 4)[:3], call=_trained)

CHECKS = [
    check_training,
    check_evaluation,
    check_bfloat16,
    check_large_mean,
    check_single_sample,
    check_gradients,
    check_views,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(batch_norm, CHECKS)
