"""sharded_rms_norm against the RMSNorm of the whole width."""

import pytest
import torch
from torch.overrides import TorchFunctionMode

from snippets.coding.sharded_rms_norm import sharded_rms_norm
from tests.snippets.coding.cases import (
    ONE_ROUNDING,
    close,
    expect,
    gains,
    gradients,
    has_dtype,
    in_every_dtype,
    numbers,
    results,
    unchanged,
)

JUDGED = sharded_rms_norm
WIDTHS = ((4, 4), (3, 5, 1), (8,), (1, 1, 1, 6))


def _inputs(widths, dtype=torch.float64, scale=1.0):
    x, gain = numbers((2, 5, sum(widths)), scale=scale), gains(sum(widths))
    loud = torch.cat([torch.full((w,), 3.0**i) for i, w in enumerate(widths)])
    shards = [each.clone() for each in (x * loud).to(dtype).split(widths, -1)]
    return shards, [each.clone() for each in gain.to(dtype).split(widths)]


def _wanted(shards, parts, eps):
    x, gain = torch.cat(shards, -1).double(), torch.cat(parts).double()
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    y = gain * x / (length**2 / x.shape[-1] + eps) ** 0.5
    return y.split([shard.shape[-1] for shard in shards], -1)


def _compare(norm, shards, parts, eps, rtol, case):
    with unchanged(case, *shards, *parts):
        found = norm(shards, parts, eps)
    results(found, "part " * len(shards), case)
    for i, wanted in enumerate(_wanted(shards, parts, eps)):
        has_dtype(f"part {i}", found[i], shards[i].dtype, case)
        close(f"part {i}", found[i], wanted, rtol, case=case)


def check_widths(norm):
    for widths in WIDTHS:
        case = f"shards of width {widths}, each louder than the last, float64"
        _compare(norm, *_inputs(widths), 1e-3, 1e-9, case)


def check_faint_rows(norm):
    case = "shards of width (3, 5, 1), size 1e-4, eps 1e-6"
    _compare(norm, *_inputs((3, 5, 1), scale=1e-4), 1e-6, 1e-9, case)


@in_every_dtype
def check_dtypes(norm, dtype):
    shards, parts = _inputs((3, 5), dtype, scale=100.0)
    case = f"shards of width (3, 5), size 300 in {dtype}"
    _compare(norm, shards, parts, 1e-6, ONE_ROUNDING[dtype], case)


class _NoGather(TorchFunctionMode):
    """Fails on a tensor that holds the features of all ranks."""

    def __torch_function__(self, call, types, args=(), kwargs=None):
        made = call(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            words = f"{call.__name__} brings the features of all ranks together"
            expect(made.numel() < 2 * 5 * 15, "what ranks exchange", words)
        return made


def check_exchange(norm):
    shards, parts = _inputs((5, 4, 6))
    with _NoGather():
        norm(shards, parts, 1e-6)


def check_gradients(norm):
    shards, parts = _inputs((3, 5))
    inputs = [each.requires_grad_() for each in (*shards, *parts)]
    g, case = numbers((2, 5, 8), seed=1), "gradients by autograd, width (3, 5)"
    ours = gradients(torch.cat(norm(shards, parts, 1e-6), -1), inputs, g, case)
    exact = torch.autograd.grad(torch.cat(_wanted(shards, parts, 1e-6), -1), inputs, g)
    for a, b in zip(ours, exact, strict=True):
        close("a gradient", a, b, case=case)


CHECKS = [check_dtypes, check_widths, check_faint_rows, check_exchange, check_gradients]


def _wide(shards):
    return [s.to(torch.promote_types(s.dtype, torch.float32)) for s in shards]


def _finish(shards, parts, r):
    return [
        (h * r * gain).to(shard.dtype)
        for shard, h, gain in zip(shards, _wide(shards), parts, strict=True)
    ]


def _squares(shards):
    return [h.square().sum(-1, keepdim=True) for h in _wide(shards)]


def every_shard_for_itself(shards, gains, eps=1e-6):
    one = [sharded_rms_norm([s], [g], eps) for s, g in zip(shards, gains, strict=True)]
    return [part for (part,) in one]


def means_averaged(shards, gains, eps=1e-6):
    means = [h.square().mean(-1, keepdim=True) for h in _wide(shards)]
    return _finish(shards, gains, torch.rsqrt(sum(means) / len(means) + eps))


def roots_averaged(shards, gains, eps=1e-6):
    roots = [h.square().mean(-1, keepdim=True).sqrt() for h in _wide(shards)]
    mean = sum(roots) / len(roots)
    return _finish(shards, gains, torch.rsqrt(mean.square() + eps))


def divides_by_the_local_width(shards, gains, eps=1e-6):
    total = sum(_squares(shards))
    return _finish(shards, gains, torch.rsqrt(total / shards[0].shape[-1] + eps))


def divides_by_the_ranks(shards, gains, eps=1e-6):
    total = sum(_squares(shards))
    return _finish(shards, gains, torch.rsqrt(total / len(shards) + eps))


def eps_on_every_rank(shards, gains, eps=1e-6):
    d = sum(s.shape[-1] for s in shards)
    total = sum(each / d + eps for each in _squares(shards))
    return _finish(shards, gains, torch.rsqrt(total))


def first_gain_on_every_rank(shards, gains, eps=1e-6):
    most = max(len(g) for g in gains)
    cycled = gains[0].repeat(most)
    return sharded_rms_norm(shards, [cycled[: len(g)] for g in gains], eps)


def sum_in_low_precision(shards, gains, eps=1e-6):
    total = sum(s.square().sum(-1, keepdim=True) for s in shards)
    d = sum(s.shape[-1] for s in shards)
    return _finish(shards, gains, torch.rsqrt(total / d + eps))


def exchanges_in_low_precision(shards, gains, eps=1e-6):
    d = sum(s.shape[-1] for s in shards)
    total = sum((q / d).to(shards[0].dtype) for q in _squares(shards))
    return _finish(shards, gains, torch.rsqrt(_wide([total])[0] + eps))


def gathers_the_features(shards, gains, eps=1e-6):
    widths = [s.shape[-1] for s in shards]
    whole = sharded_rms_norm([torch.cat(shards, -1)], [torch.cat(gains)], eps)
    return list(whole[0].split(widths, -1))


def other_ranks_detached(shards, gains, eps=1e-6):
    d, squares = sum(s.shape[-1] for s in shards), _squares(shards)
    found = []
    for i, part in enumerate(shards):
        total = sum(q if j == i else q.detach() for j, q in enumerate(squares))
        r = torch.rsqrt(total / d + eps)
        found += _finish([part], [gains[i]], r)
    return found


VARIANTS = [
    every_shard_for_itself,
    means_averaged,
    roots_averaged,
    divides_by_the_local_width,
    divides_by_the_ranks,
    eps_on_every_rank,
    first_gain_on_every_rank,
    sum_in_low_precision,
    exchanges_in_low_precision,
    gathers_the_features,
    other_ranks_detached,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
