"""Sums in the order and precision that the page describes."""

from fractions import Fraction

import torch

from snippets.low_precision.accumulation import sum_in_order
from tests.same_results import on_views
from tests.wrong import suite

BITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24}


def rounded(value: Fraction, bits: int) -> Fraction:
    """The nearest number with this many significant bits, ties to even."""
    if value == 0:
        return value
    step = Fraction(1)
    while abs(value) / step >= 2**bits:
        step *= 2
    while abs(value) / step < 2 ** (bits - 1):
        step /= 2
    return round(value / step) * step  # round() of a Fraction ties to even


def model(terms: list[float], bits: int) -> float:
    total = Fraction(0)
    for term in terms:
        total = rounded(total + Fraction(term), bits)
    return float(total)


def matches_exact_arithmetic(function):
    """Against rational numbers rounded by hand after each addition."""
    generator = torch.Generator().manual_seed(1)
    for dtype, bits in BITS.items():
        for length in (1, 2, 3, 17, 301):
            terms = (torch.rand(length, generator=generator) * 4 - 1).to(dtype)
            got = function(terms)
            assert got.dtype == dtype and got.shape == ()
            assert got.item() == model(terms.tolist(), bits)


def stalls(function):
    """Ones stop counting at 2^p, where the step above reaches two."""
    for dtype, bits in ((torch.float16, 11), (torch.bfloat16, 8)):
        assert function(torch.ones(2**12, dtype=dtype)).item() == 2**bits


def keeps_order(function):
    terms = torch.tensor([256.0, 1.0, 1.0, 1.0]).bfloat16()
    assert function(terms).item() == 256.0
    assert function(terms.flip(0)).item() == 260.0  # 3 + 256, to even


def sums_columns(function):
    terms = torch.arange(30.0).reshape(5, 2, 3)
    before = terms.clone()
    assert function(terms).tolist() == [[60.0, 65.0, 70.0], [75.0, 80.0, 85.0]]
    assert torch.equal(terms, before)


CHECKS = [
    matches_exact_arithmetic,
    stalls,
    keeps_order,
    sums_columns,
    on_views(torch.arange(30.0).reshape(5, 2, 3)),
]


test_sum_in_order, test_rejects = suite(sum_in_order, CHECKS)


def test_squares_below_four_stall_at_1024():
    """The sentence under the block: at 1024 a bfloat16 step is 8."""
    below_four = torch.tensor(3.984375).bfloat16()
    assert torch.tensor(1024.0).bfloat16() + below_four == 1024.0
    assert below_four.nextafter(torch.tensor(8.0).bfloat16()) == 4.0


def test_torch_sum_accumulates_wide():
    ones = torch.ones(4096, dtype=torch.bfloat16)
    assert ones.sum().item() == 4096.0
    assert torch.full((4096,), 40000.0).half().mean().item() == 40000.0
    assert torch.full((4096,), 40000.0).half().sum().item() == float("inf")
