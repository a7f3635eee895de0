"""InferenceNorm: what is x after the call?"""

import pytest
import torch
from torch.nn import functional as F

from snippets.spot_the_bug.inference_norm import InferenceNorm
from tests.snippets.spot_the_bug.repair import (
    close,
    expect,
    numbers,
    repaired,
    with_parameters,
)

LISTING = InferenceNorm
BUG = "x.mul_(torch.rsqrt(mean_square + self.eps))"
FIX = "x = x * torch.rsqrt(mean_square + self.eps)"
JUDGED = repaired(LISTING, BUG, FIX)


def check_input_unchanged(kind):
    for dtype in (torch.float32, torch.bfloat16):
        x = numbers((3, 8), dtype=dtype)
        before = x.clone()
        kind(8)(x)
        expect(torch.equal(x, before), f"x in {dtype}", "the call changed x")


CHECKS = [check_input_unchanged]


def usual(kind):
    norm, x = with_parameters(kind(8)), numbers((3, 8), dtype=torch.float32)
    wanted = F.rms_norm(x, (8,), norm.weight, 1e-6)
    close("y", norm(x), wanted, 1e-5, case="float32")
    x = x.bfloat16()
    before = x.clone()
    norm(x)
    expect(torch.equal(x, before), "bfloat16", "the call changed x")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
