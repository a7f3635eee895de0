"""capped_attention: a cap must not open the mask."""

import pytest
import torch
from torch.nn import functional as F

from snippets.spot_the_bug.capped_attention import capped_attention
from tests.snippets.spot_the_bug.repair import close, expect, numbers, repaired

LISTING = capped_attention
BUG = """scores = scores.masked_fill(future, float("-inf"))
scores = cap * torch.tanh(scores / cap)"""
FIX = """scores = cap * torch.tanh(scores / cap)
scores = scores.masked_fill(future, float("-inf"))"""
JUDGED = repaired(LISTING, BUG, FIX)


def _inputs():
    return [numbers((1, 2, 5, 4), seed=i, dtype=torch.float32) for i in range(3)]


def check_causality(attention):
    q, k, v = _inputs()
    for cap in (50.0, 5.0):
        before = attention(q, k, v, cap)[..., :-1, :]
        louder = v.clone()
        louder[..., -1, :] = 1e25
        after = attention(q, k, louder, cap)[..., :-1, :]
        case = f"the last value became 1e25, cap {cap}"
        expect(torch.equal(before, after), case, "earlier positions moved")


CHECKS = [check_causality]


def usual(attention):
    q, k, v = _inputs()
    y = attention(q, k, v)
    wanted = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    close("y", y, wanted, 0.05, case="scores far below a cap of 50")
    v[..., -1, :] += 1
    moved = (attention(q, k, v) - y)[..., :-1, :].abs().max()
    close("the change", moved, torch.tensor(0.0), atol=1e-6, case="the last value + 1")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
