"""The gate: how far an output is from the exact answer."""

import pytest
import torch

from scripts.measure.kernels import gate

ONES = torch.ones(2, 3, dtype=torch.float64)


def test_distance_counts_units_in_the_last_place():
    exact = torch.tensor([1.0, 1.5, -2.0, 1e-50], dtype=torch.float64)
    found = exact.float()
    found[1] += 3 * 2**-23
    found[2] -= 2**-23  # half a unit from -2 on
    relative, beyond = gate.distance(found, exact)
    assert beyond == 0.25
    gap = ((found.double() - exact).norm() / exact.norm()).item()
    assert relative == pytest.approx(gap)


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_is_infinitely_far(value):
    found = ONES.float()
    found[1, 2] = value
    assert gate.distance(found, ONES) == gate.INFINITE
    assert gate.distance(found, found.double()) == gate.INFINITE


@pytest.mark.parametrize("shape", [(0,), (6,), (3, 2), (1, 3)])
def test_another_shape_is_infinitely_far(shape):
    assert gate.distance(torch.ones(shape), ONES) == gate.INFINITE


def test_the_same_bits_of_what_is_not_a_number():
    one = torch.tensor([1.0, torch.nan, -0.0]).expand(2, 3)
    assert gate.same_bits([one], [one.clone()])
    assert not gate.same_bits([one], [one.nan_to_num()])
    assert not gate.same_bits([one], [one.abs()])
