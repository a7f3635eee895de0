"""sharded_rms_norm against the RMSNorm of the whole width."""

import pytest
import torch
from torch.overrides import TorchFunctionMode

from snippets.coding.sharded_rms_norm import sharded_rms_norm
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    ONE_ROUNDING,
    by_hand,
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
from tests.wrong import rejects

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


@by_hand
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


check_views = on_views(
    numbers((3, 4, 5)),
    numbers((3, 4, 2), seed=1),
    gains(5),
    gains(2),
    call=lambda norm, a, b, one, two: tuple(norm([a, b], [one, two], 1e-3)),
)

CHECKS = [
    check_dtypes,
    check_widths,
    check_faint_rows,
    check_exchange,
    check_gradients,
    check_views,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(sharded_rms_norm, CHECKS)
