"""The simplest kernel that adds and norms: values against float64, and wrong ones."""

import torch

from snippets.fused_residual.one_row import by_rows
from snippets.rms_norm import reference
from tests.kernel_checks import (
    DTYPES,
    INTERPRETED,
    MATRICES,
    assert_near,
    draw,
    gains,
    poisoned,
)
from tests.wrong import suite

pytestmark = INTERPRETED


def check(norm, x, eps=1e-6):
    branch, gain = draw(*x.shape, seed=1, dtype=x.dtype), gains(x.shape[-1], x.dtype)
    with poisoned():
        s, y = norm(x, branch, gain, eps)
    assert s.dtype == y.dtype == x.dtype
    assert_near(s, x.double() + branch.double(), "s")
    # The norm of the sum as it was rounded, so that the bound is that of one rounding.
    assert_near(y, reference.rms_norm(s.double(), gain.double(), eps), "y")


def check_shapes_and_dtypes(norm):
    for dtype in DTYPES:
        for shape in MATRICES:
            check(norm, draw(*shape, dtype=dtype, scale=2.0, offset=0.5))


def check_norm_of_the_rounded_sum(norm):
    """Bit for bit what the norm of s alone gives: nothing is left to add to it."""
    x, branch = (draw(16, 96, seed=i, dtype=torch.bfloat16) for i in range(2))
    s, y = norm(x, branch, gains(96, torch.bfloat16), 1e-6)
    zero = torch.zeros_like(s)
    assert torch.equal(norm(s, zero, gains(96, torch.bfloat16), 1e-6)[1], y)


CHECKS = [check_shapes_and_dtypes, check_norm_of_the_rounded_sum]


test_right, test_rejects = suite(by_rows, CHECKS)
