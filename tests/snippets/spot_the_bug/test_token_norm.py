"""TokenNorm: one statistic a token, or one for the whole sequence?"""

import pytest
import torch
from torch.nn import functional as F

from snippets.spot_the_bug.token_norm import TokenNorm
from tests.snippets.spot_the_bug.repair import (
    close,
    expect,
    numbers,
    repaired,
    with_parameters,
)

LISTING = TokenNorm
BUG = "dims = tuple(range(1, x.ndim))"
FIX = "dims = (-1,)"
JUDGED = repaired(LISTING, BUG, FIX)


def check_causality(kind):
    norm, x = kind(8), numbers((2, 5, 8), dtype=torch.float32)
    before = norm(x)[:, :-1]
    x[:, -1] *= 10
    same = torch.allclose(before, norm(x)[:, :-1], atol=1e-6)
    expect(same, "the last token grew", "earlier tokens moved")


def check_unequal_tokens(kind):
    norm, x = with_parameters(kind(8)), numbers((2, 5, 8), dtype=torch.float32)
    wanted = F.layer_norm(x, (8,), norm.weight, norm.bias)
    close("y", norm(x), wanted, 1e-4, case="tokens of unequal size")


CHECKS = [check_causality, check_unequal_tokens]


def usual(kind):
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    y = kind(8)(x)
    expect(y.shape == x.shape, "randn", f"y is {tuple(y.shape)}")
    close("the mean", y.mean(), torch.tensor(0.0), atol=1e-5, case="randn")
    close("the deviation", y.std(correction=0), torch.tensor(1.0), 1e-3, case="randn")
    one = torch.randn(4, 1, 8, generator=torch.Generator().manual_seed(0))
    close("y", kind(8)(one), F.layer_norm(one, (8,)), 1e-4, case="one token")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
