"""The gate: how far an output is from the exact answer."""

import pytest
import torch

from scripts.measure.kernels import gate


def test_distance_counts_units_in_the_last_place():
    exact = torch.tensor([1.0, 1.5, -2.0, 1e-50], dtype=torch.float64)
    found = exact.float()
    found[1] += 3 * 2**-23
    found[2] -= 2 * 2**-22
    measured = gate.distance(found, exact)
    assert measured.most_ulp == pytest.approx(3.0, abs=0.1)
    assert measured.beyond == 0.5
    gap = ((found.double() - exact).norm() / exact.norm()).item()
    assert measured.relative == pytest.approx(gap)


def test_distance_of_what_was_never_written_is_infinite():
    found = torch.tensor([1.0, torch.nan])
    assert gate.distance(found, torch.ones(2).double()).relative == float("inf")


def test_another_shape_is_infinitely_far():
    exact = torch.ones(2, 3).double()
    for shape in ((0,), (6,), (3, 2), (1, 3)):
        assert gate.distance(torch.ones(shape), exact).relative == float("inf")
    assert gate.distance(torch.ones(0, 3), exact[:0]).relative == 0.0


VALUES = (torch.inf, -torch.inf, torch.nan, 2.0)


def test_what_is_not_finite_in_the_answer_must_be_the_same():
    exact = torch.tensor(VALUES).double()
    assert gate.distance(exact.float(), exact).relative == 0.0
    nothing = torch.full((3,), torch.nan)
    assert gate.distance(nothing, nothing.double()).relative == 0.0
    for place, right in enumerate(VALUES):
        for value in {0.0, 1e38, *VALUES} - {right}:
            found = exact.float()
            found[place] = value
            assert gate.distance(found, exact).relative >= 1


def test_the_same_bits_of_what_is_not_a_number():
    one = torch.tensor([1.0, torch.nan, -0.0]).expand(2, 3)
    assert gate.same_bits([one], [one.clone()])
    assert gate.same_bits([one[:0]], [one[:0]])
    assert not gate.same_bits([one], [one.nan_to_num()])
    assert not gate.same_bits([one], [one.abs()])


def test_pieces_give_the_distance_of_the_whole(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(4096, 64, generator=generator, dtype=torch.float64)
    noise = torch.randn(4096, 64, generator=generator, dtype=torch.float64)
    found = (exact * (1 + 1e-7 * noise)).float()
    whole = gate.distance(found, exact)
    assert 0.1 < whole.beyond < 0.9
    assert gate.distance(found, exact, unit=1e9).beyond == 0
    monkeypatch.setattr(gate, "PIECE", 10_000)
    parts = gate.distance(found, exact)
    assert parts.relative == pytest.approx(whole.relative, rel=1e-12)
    assert (parts.beyond, parts.most_ulp) == (whole.beyond, whole.most_ulp)
