"""SentenceNorm: more padding must not change a single real token."""

import pytest
import torch
from torch.nn import functional as F

from snippets.spot_the_bug.sentence_norm import SentenceNorm
from tests.snippets.spot_the_bug.repair import (
    close,
    expect,
    numbers,
    repaired,
    with_parameters,
)

LISTING = SentenceNorm
BUG = "y = self.norm(x.flatten(0, 1)).view_as(x)"
FIX = """y = x.new_zeros(x.shape)
y[mask] = self.norm(x[mask])"""
JUDGED = repaired(LISTING, BUG, FIX)


def check_more_padding(kind):
    x = numbers((2, 3, 4), offset=2.0, dtype=torch.float32)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    short = with_parameters(kind(4))(x, mask)
    x, mask = F.pad(x, (0, 0, 0, 5)), F.pad(mask, (0, 5))
    longer = with_parameters(kind(4))(x, mask)[:, :3]
    close("a real token", longer, short, 1e-4, case="five more columns of padding")


CHECKS = [check_more_padding]


def usual(kind):
    x = numbers((2, 3, 4), offset=2.0, dtype=torch.float32)
    norm, full = with_parameters(kind(4)), torch.ones(2, 3, dtype=torch.bool)
    tokens = x.flatten(0, 1)
    own = norm.norm
    wanted = F.batch_norm(tokens, None, None, own.weight, own.bias, True)
    close("y", norm(x, full).flatten(0, 1), wanted, 1e-4, case="no padding")
    some = torch.tensor([[True, True, True], [True, False, False]])
    y = norm(x, some)
    expect(bool((y[~some] == 0).all()), "padding", "does not come out as zero")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
