"""MixedNorm: does bfloat16 come out where bfloat16 went in?"""

import pytest
import torch
from torch.nn import functional as F

from snippets.spot_the_bug.mixed_norm import MixedNorm
from tests.snippets.spot_the_bug.repair import (
    close,
    expect,
    numbers,
    repaired,
    with_parameters,
)

LISTING = MixedNorm
BUG = "return self.weight * self._norm(x.float()).type_as(x)"
FIX = "return (self.weight * self._norm(x.float())).type_as(x)"
JUDGED = repaired(LISTING, BUG, FIX)


def check_output_dtype(kind):
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        y = kind(8)(numbers((3, 8), dtype=dtype))
        expect(y.dtype == dtype, f"x in {dtype}", f"y is {y.dtype}")


CHECKS = [check_output_dtype]


def usual(kind):
    norm, x = with_parameters(kind(8)), numbers((3, 8), dtype=torch.bfloat16)
    wanted = F.rms_norm(x.float(), (8,), norm.weight, 1e-6)
    close("y", norm(x), wanted, 2e-2, case="bfloat16")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
