"""key_norm_attention: no position may feel the future."""

import pytest
import torch
from torch.nn import functional as F

from snippets.spot_the_bug.key_norm import key_norm_attention
from tests.snippets.spot_the_bug.repair import (
    close,
    expect,
    gains,
    numbers,
    repaired,
)

LISTING = key_norm_attention
BUG = "k = F.normalize(k, dim=-1) * k_gain[:, None] * width**0.5"
FIX = "k = F.normalize(k, dim=-2) * k_gain[:, None] * width**0.5"
JUDGED = repaired(LISTING, BUG, FIX)


def _inputs():
    q, k, v = (numbers((2, 3, 5, 4), seed=i, dtype=torch.float32) for i in range(3))
    gain = [gains(4, seed=seed, dtype=torch.float32) for seed in (0, 1)]
    return q, k, v, *gain


def check_causality(attention):
    q, k, v, *both = _inputs()
    before = attention(q, k, v, *both)[..., :-1, :]
    k[..., -1, :] *= 50
    after = attention(q, k, v, *both)[..., :-1, :]
    same = torch.allclose(before, after, atol=1e-6)
    expect(same, "the last key grew", "earlier positions moved")


def check_by_hand(attention):
    q, k, v, q_gain, k_gain = _inputs()
    normed = [F.rms_norm(x, (4,), g, 0.0) for x, g in ((q, q_gain), (k, k_gain))]
    wanted = F.scaled_dot_product_attention(*normed, v, is_causal=True)
    close("y", attention(q, k, v, q_gain, k_gain), wanted, 1e-4, case="unequal keys")


CHECKS = [check_causality, check_by_hand]


def usual(attention):
    q, k, v, *both = _inputs()
    y = attention(q, k, v, *both)
    expect(y.shape == q.shape, "randn", f"y is {tuple(y.shape)}")
    v[..., -1, :] *= 50
    same = torch.equal(y[..., :-1, :], attention(q, k, v, *both)[..., :-1, :])
    expect(same, "the last value grew", "earlier positions moved")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
