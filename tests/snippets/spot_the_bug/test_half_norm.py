"""HalfNorm in float16, where squares overflow and underflow."""

import pytest
import torch

from snippets.spot_the_bug.half_norm import HalfNorm
from tests.snippets.spot_the_bug.repair import (
    close,
    numbers,
    repaired,
    with_parameters,
)

LISTING = HalfNorm
BUG = "mean_square = x.pow(2).to(torch.float32).mean(-1, keepdim=True)"
FIX = "mean_square = x.to(torch.float32).pow(2).mean(-1, keepdim=True)"
JUDGED = repaired(LISTING, BUG, FIX)


def _compare(kind, x, rtol, case):
    norm = with_parameters(kind(8))
    wide = x.double()
    wanted = wide / (wide.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    close("y", norm(x), wanted * norm.weight.double(), rtol, case=case)


def check_loud_rows(kind):
    x = numbers((4, 8), scale=1000.0, dtype=torch.float16)
    _compare(kind, x, 2**-10, "float16 rows of size 1000")


CHECKS = [check_loud_rows]


def usual(kind):
    for dtype, rtol in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
        _compare(kind, x.to(dtype), rtol, f"randn in {dtype}")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
