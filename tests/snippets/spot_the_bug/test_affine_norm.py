"""AffineNorm against nn.LayerNorm, where epsilon matters."""

import pytest
import torch
from torch import nn

from snippets.spot_the_bug.affine_norm import AffineNorm
from tests.snippets.spot_the_bug.repair import (
    close,
    expect,
    numbers,
    repaired,
    with_parameters,
)

LISTING = AffineNorm
BUG = "x = (x - mean) / (var.sqrt() + self.eps)"
FIX = "x = (x - mean) / (var + self.eps).sqrt()"
JUDGED = repaired(LISTING, BUG, FIX)


def check_faint_rows(kind):
    x = numbers((4, 8), scale=1e-3, dtype=torch.float32)
    ours, torch_norm = with_parameters(kind(8)), with_parameters(nn.LayerNorm(8))
    close("y", ours(x), torch_norm(x), 1e-4, case="rows of size 1e-3")


def check_gradient_at_a_constant_row(kind):
    x = torch.full((1, 8), 0.5).requires_grad_()
    kind(8)(x).sum().backward()
    finite = bool(x.grad.isfinite().all())
    expect(finite, "a constant row, gradient of x", f"holds {x.grad[0, 0]}")


CHECKS = [check_faint_rows, check_gradient_at_a_constant_row]


def usual(kind):
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    ours, torch_norm = with_parameters(kind(8)), with_parameters(nn.LayerNorm(8))
    close("y", ours(x), torch_norm(x), 1e-4, case="randn")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
