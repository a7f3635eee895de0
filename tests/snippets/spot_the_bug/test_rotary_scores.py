"""RotaryScores: only distances between positions may count."""

import pytest
import torch
from torch.nn import functional as F

from snippets.spot_the_bug.rotary_scores import RotaryScores
from tests.snippets.spot_the_bug.repair import (
    close,
    numbers,
    repaired,
    with_parameters,
)

LISTING = RotaryScores
BUG = """q, k = rotate(q), rotate(k)
q, k = self.q_norm(q), self.k_norm(k)"""
FIX = """q, k = self.q_norm(q), self.k_norm(k)
q, k = rotate(q), rotate(k)"""
JUDGED = repaired(LISTING, BUG, FIX)


def _shifted(scores):
    q, k = (numbers((1, 2, 5, 8), seed=i, dtype=torch.float32) for i in range(2))
    here = scores(q, k)
    later = scores(F.pad(q, (0, 0, 3, 0)), F.pad(k, (0, 0, 3, 0)))[..., 3:, 3:]
    return here, later


def check_shift(kind):
    here, later = _shifted(with_parameters(kind(8)))
    close("a score", later, here, 1e-4, case="all tokens three positions later")


CHECKS = [check_shift]


def usual(kind):
    here, later = _shifted(kind(8))
    close("a score", later, here, 1e-4, case="the same, with gains of one")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
