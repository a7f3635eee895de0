"""QK-Clip: per head, after the step, half in W_q and half in W_k."""

import copy
import math

import pytest
import torch
from torch._higher_order_ops.flex_attention import math_attention
from torch.nn.attention.flex_attention import AuxRequest, flex_attention

from snippets.qk_norm.attention import Attention, largest_logit
from snippets.qk_norm.clip import qk_clip
from snippets.rms_norm.reference import RMSNorm
from tests.snippets.qk_norm.float64 import SHAPES, assert_close, build, inputs
from tests.wrong import suite

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


test_right, test_known_wrong = suite(qk_clip, CHECKS)


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


def test_flex_attention_returns_no_maximum_on_a_cpu():
    """When it does, the page's sentence goes, and a snippet can take its place."""
    q = k = v = torch.randn(1, 2, 4, 8)
    with pytest.raises(NotImplementedError, match="max scores"):
        flex_attention(q, k, v, return_aux=AuxRequest(max_scores=True))


def test_flex_attention_takes_both_after_score_mod():
    """By its own reference, which also says them in base two."""
    q, k, v = torch.randn(3, 1, 2, 4, 8)

    def cap(score, *_):
        return torch.tanh(score)

    everything = (lambda *_: torch.tensor(True),)
    _, lse, largest = math_attention(q, k, v, cap, everything, 8**-0.5, {})
    capped = torch.tanh(q @ k.mT * 8**-0.5)
    assert_close(largest * math.log(2), capped.amax(-1), 1e-6)
    assert_close(lse * math.log(2), capped.logsumexp(-1), 1e-6)
