"""QK-Clip: per head, after the step, half in W_q and half in W_k."""

import copy

import pytest
import torch

from snippets.qk_norm.attention import Attention, largest_logit
from snippets.qk_norm.clip import qk_clip
from snippets.rms_norm.reference import RMSNorm
from tests.snippets.qk_norm.float64 import SHAPES, assert_close, build, inputs

MULTI, GROUPED = SHAPES[1], SHAPES[2]


def _clipped(clip, shape, tau=None, seed=0):
    """Before and after; tau lies between the heads' largest logits."""
    before = build(Attention, shape, None, seed=seed)
    x = inputs(shape)
    logits = before.logits(x).detach()
    largest = largest_logit(logits)
    tau = float(largest.median()) if tau is None else tau
    after = copy.deepcopy(before)
    clip(after, largest, tau)
    return before, after, logits, after.logits(x).detach(), largest, tau


def check_logits_shrink_by_the_right_factor(clip):
    for shape in (MULTI, GROUPED):
        _, _, logits, clipped, largest, tau = _clipped(clip, shape)
        for head, top in enumerate(largest.tolist()):
            factor = tau / top if top > tau else 1.0
            expected = factor * logits[:, head]
            assert_close(clipped[:, head], expected, 1e-12, f"head {head}")


def check_balance(clip):
    """The root on both sides when key heads are not shared."""
    before, after, *_, largest, tau = _clipped(clip, MULTI)
    for name in ("query", "key"):
        old, new = (getattr(a, name).weight.detach() for a in (before, after))
        rows = zip(old.split(MULTI[3]), new.split(MULTI[3]), strict=True)
        for top, (a, b) in zip(largest.tolist(), rows, strict=True):
            factor = (tau / top) ** 0.5 if top > tau else 1.0
            assert_close(b, factor * a, 1e-12, name)


def check_shared_keys_are_left_alone(clip):
    before, after, *_ = _clipped(clip, GROUPED)
    assert torch.equal(before.key.weight, after.key.weight), "shared keys moved"


def check_values_and_outputs_are_left_alone(clip):
    for shape in (MULTI, GROUPED):
        before, after, *_ = _clipped(clip, shape)
        for name in ("value", "output"):
            old, new = (getattr(a, name).weight for a in (before, after))
            assert torch.equal(old, new), f"{name} moved"


def check_small_heads_are_left_alone(clip):
    """Also heads whose largest logit is negative or zero."""
    attention = build(Attention, MULTI, None)
    start = copy.deepcopy(attention.state_dict())
    clip(attention, torch.tensor([-5.0, 0.0, 0.5]).double(), 1.0)
    for name, value in attention.state_dict().items():
        assert torch.equal(value, start[name]), f"{name} moved"


def check_keeps_dtype_and_graph(clip):
    attention = build(Attention, MULTI, None, dtype=torch.bfloat16)
    clip(attention, torch.tensor([9.0, 1.0, 1.0]), 4.0)
    for parameter in attention.parameters():
        assert parameter.dtype == torch.bfloat16
        assert parameter.is_leaf
        assert parameter.requires_grad


CHECKS = [
    check_logits_shrink_by_the_right_factor,
    check_balance,
    check_shared_keys_are_left_alone,
    check_values_and_outputs_are_left_alone,
    check_small_heads_are_left_alone,
    check_keeps_dtype_and_graph,
]


@torch.no_grad()
def _apply(attention, q_part, k_part=None):
    for layer, part in ((attention.query, q_part), (attention.key, k_part)):
        if part is not None:
            rows = layer.weight.view(-1, attention.width, layer.in_features)
            rows.mul_(part[: len(rows), None, None].to(rows.dtype))


def _factor(largest, tau):
    return torch.where(largest > tau, tau / largest, torch.ones_like(largest))


def _split(attention, factor):
    if attention.heads > attention.key_heads:
        _apply(attention, factor)
    else:
        _apply(attention, factor.sqrt(), factor.sqrt())


def all_heads_clipped_together(attention, largest, tau=100.0):
    _split(attention, _factor(largest, tau).amin().expand_as(largest))


def whole_factor_on_both_sides(attention, largest, tau=100.0):
    factor = _factor(largest, tau)
    _apply(attention, factor, factor)


def root_in_the_queries_only(attention, largest, tau=100.0):
    _apply(attention, _factor(largest, tau).sqrt())


def whole_factor_in_the_queries(attention, largest, tau=100.0):
    _apply(attention, _factor(largest, tau))


def small_heads_grow_to_tau(attention, largest, tau=100.0):
    _split(attention, (tau / largest).abs())


def negative_largest_flips_the_sign(attention, largest, tau=100.0):
    _split(attention, (tau / largest).clamp(max=1.0))


def shared_keys_shrunk_too(attention, largest, tau=100.0):
    factor = _factor(largest, tau)
    _apply(attention, factor.sqrt(), factor.sqrt())


def columns_for_rows(attention, largest, tau=100.0):
    factor = _factor(largest, tau).sqrt()
    with torch.no_grad():
        for layer in (attention.query, attention.key):
            columns = layer.weight[:, : len(factor)]
            columns.mul_(factor[: columns.shape[1]])


def heads_interleaved(attention, largest, tau=100.0):
    factor = _factor(largest, tau).sqrt()
    with torch.no_grad():
        for layer in (attention.query, attention.key):
            rows = layer.weight.view(attention.width, -1, layer.in_features)
            rows.mul_(factor[None, : rows.shape[1], None])


def values_shrunk_too(attention, largest, tau=100.0):
    factor = _factor(largest, tau)
    _split(attention, factor)
    with torch.no_grad():
        rows = attention.value.weight.view(
            -1, attention.width, attention.key.in_features
        )
        rows.mul_(factor[: len(rows), None, None].to(rows.dtype))


def tau_over_the_root_of_the_width(attention, largest, tau=100.0):
    _split(attention, _factor(largest, tau / attention.width**0.5))


def clips_single_weights(attention, largest, tau=100.0):
    """Cuts each weight down to tau: a clip of weights, not of logits."""
    with torch.no_grad():
        for layer in (attention.query, attention.key):
            layer.weight.clamp_(-tau / 50, tau / 50)


VARIANTS = [
    all_heads_clipped_together,
    whole_factor_on_both_sides,
    root_in_the_queries_only,
    whole_factor_in_the_queries,
    small_heads_grow_to_tau,
    negative_largest_flips_the_sign,
    shared_keys_shrunk_too,
    columns_for_rows,
    heads_interleaved,
    values_shrunk_too,
    tau_over_the_root_of_the_width,
    clips_single_weights,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(qk_clip)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_after_the_clip_the_largest_logit_is_tau():
    *_, after, _, tau = _clipped(qk_clip, MULTI)
    assert float(largest_logit(after).amax()) == pytest.approx(tau, rel=1e-12)


def test_does_nothing_behind_a_norm():
    """Behind QK-Norm the lengths of W_q and W_k do not reach the logits."""
    attention = Attention(24, 3, norm=RMSNorm).double()
    x = torch.randn(2, 9, 24, dtype=torch.float64)
    before = attention.logits(x).detach()
    qk_clip(attention, largest_logit(before), tau=0.1)
    assert_close(attention.logits(x), before, 1e-3)
