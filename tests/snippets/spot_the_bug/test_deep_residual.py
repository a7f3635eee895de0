"""DeepResidual: deep models keep their stream, and change it little."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.spot_the_bug.deep_residual import DeepResidual
from tests.snippets.spot_the_bug.repair import close, expect, numbers, repaired

LISTING = DeepResidual
BUG = "return self.norm(x + self.alpha * self.branch(x))"
FIX = "return self.norm(self.alpha * x + self.branch(x))"
JUDGED = repaired(LISTING, BUG, FIX)


class Roll(nn.Module):
    """As large as its input, and unlike it."""

    def forward(self, x):
        return x.roll(1, -1)


def check_stream_kept(kind):
    x = numbers((4, 64), dtype=torch.float32)
    with torch.no_grad():
        y = kind(Roll(), 64, 100)(x)
    cosine = float(torch.cosine_similarity(x, y, dim=-1).min())
    expect(cosine > 0.9, "100 layers, a branch as large as x", f"cosine {cosine:.2f}")


def check_by_hand(kind):
    x = numbers((2, 3, 8), dtype=torch.float32)
    y = kind(Roll(), 8, 8)(x)
    wanted = F.layer_norm(2 * x + x.roll(1, -1), (8,))
    close("y", y, wanted, 1e-5, case="8 layers, where alpha is 2")


CHECKS = [check_stream_kept, check_by_hand]


def usual(kind):
    x = numbers((2, 3, 8), dtype=torch.float32)
    y = kind(nn.Identity(), 8, 12)(x)
    close("y", y, F.layer_norm(x, (8,)), 1e-3, case="the identity as branch")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
