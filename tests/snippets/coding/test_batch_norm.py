"""batch_norm against torch's BatchNorm1d: outputs, statistics, gradients."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.batch_norm import batch_norm
from tests.snippets.coding.cases import (
    close,
    expect,
    gains,
    gradients,
    has_dtype,
    numbers,
    unchanged,
)

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
    names = "running_mean", "running_var"
    for name, a, b in zip(names, ours, wanted[1:], strict=True):
        close(f"afterwards {name}", a, b, 1e-4 if rtol > 1e-9 else rtol, case=case)


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


CHECKS = [
    check_training,
    check_evaluation,
    check_bfloat16,
    check_large_mean,
    check_single_sample,
    check_gradients,
]


def _batch_norm(
    x,
    gain,
    bias,
    running,
    training,
    momentum,
    eps,
    use=0,
    store=1,
    detach=False,
    root=True,
):
    """batch_norm with switches; use and store are corrections of the variance."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean, var = running
    if training:
        if len(x) < 2:
            raise ValueError
        seen = wide.detach() if detach else wide
        mean, var = seen.mean(0), seen.var(0, correction=use)
        with torch.no_grad():
            running[0].lerp_(mean, momentum)
            running[1].lerp_(wide.var(0, correction=store), momentum)
    scale = (var + eps).sqrt() if root else var.sqrt() + eps
    return ((wide - mean) / scale * gain + bias).to(x.dtype)


def running_variance_biased(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    return _batch_norm(x, gain, bias, (rm, rv), training, momentum, eps, store=0)


def normalizes_by_the_unbiased(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    return _batch_norm(x, gain, bias, (rm, rv), training, momentum, eps, use=1)


def momentum_of_the_old(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    return batch_norm(x, gain, bias, rm, rv, training, 1 - momentum, eps)


def batch_statistics_in_evaluation(
    x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5
):
    copies = (rm, rv) if training else (rm.clone(), rv.clone())
    if len(x) < 2 and not training:
        return x * 0 + bias.to(x.dtype)
    return _batch_norm(x, gain, bias, copies, True, momentum, eps)


def running_statistics_in_training(
    x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5
):
    y = batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    return batch_norm(x, gain, bias, rm, rv, False, momentum, eps) if training else y


def never_tracks(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    return batch_norm(x, gain, bias, rm.clone(), rv.clone(), training, momentum, eps)


def tracks_in_evaluation(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    y = batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    if not training:
        rm.lerp_(x.detach().mean(0).to(rm.dtype), momentum)
    return y


def statistics_over_the_features(
    x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5
):
    y = batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    wide = x.to(rm.dtype)
    return F.layer_norm(wide, x.shape[-1:], gain, bias, eps).to(x.dtype) + 0 * y


def detached_statistics(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    return _batch_norm(x, gain, bias, (rm, rv), training, momentum, eps, detach=True)


def eps_outside_the_root(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    return _batch_norm(x, gain, bias, (rm, rv), training, momentum, eps, root=False)


def two_moments(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    y = batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    if training:
        wide = x.to(rm.dtype)
        mean = wide.mean(0)
        var = wide.square().mean(0) - mean.square()
        y = ((wide - mean) * torch.rsqrt(var + eps) * gain + bias).to(x.dtype)
    return y


def never_upcasts(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    y = batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    if training:
        c = x - x.mean(0)
        y = c * torch.rsqrt(c.square().mean(0) + eps) * gain + bias
    return y.to(x.dtype)


def graph_kept_alive(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    y = batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    if training:
        rm.add_(0 * x.mean(0))
    return y


def single_sample_gives_zeros(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    if training and len(x) < 2:
        return x * 0 + bias
    return batch_norm(x, gain, bias, rm, rv, training, momentum, eps)


VARIANTS = [
    running_variance_biased,
    normalizes_by_the_unbiased,
    momentum_of_the_old,
    batch_statistics_in_evaluation,
    running_statistics_in_training,
    never_tracks,
    tracks_in_evaluation,
    statistics_over_the_features,
    detached_statistics,
    eps_outside_the_root,
    two_moments,
    never_upcasts,
    graph_kept_alive,
    single_sample_gives_zeros,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
