"""Medians by arm, best rates and pairs: what facts are made of."""

from math import inf, isnan, nan

import pytest

from scripts.measure import spread
from scripts.measure.fact_formatting import Found, ahead, apart, best, gap, with_inf

OURS, THEIRS = [1.0, 2.5, 2.0], [1.5, 2.0, 3.0]


def test_with_inf_keeps_order_and_numbers():
    assert with_inf([2.0, None, -1.0, 0.0]) == [2.0, inf, -1.0, 0.0]
    assert isnan(with_inf([nan])[0])


def test_apart_by_seed():
    assert apart(OURS, THEIRS) == [-0.5, 0.5, -1.0]
    assert apart([inf, inf, 1.0], [inf, 1.0, inf]) == [0.0, inf, -inf]
    with pytest.raises(ValueError):
        apart(OURS, THEIRS[:2])


def test_best_is_the_least_median_not_the_least_loss_or_mean():
    losses = {0.1: [0.0, 5.0, 5.0], 0.2: [4.0, 4.0, 90.0], 0.3: [inf, inf, 1.0]}
    assert best(losses, losses.get) == 0.2
    assert best([0.3, 0.1], losses.get) == 0.1
    assert best(["b", "a"], lambda rate: [1.0]) == "b"


def test_median_has_its_range():
    found = Found(kept="as it is")
    found.median("loss", [3.0, -0.001, 2.0])
    found.median("fine", [3.0, 1.0], 3)
    found.median("share", [40.0, 61.0], 0, "%")
    assert found == {
        "kept": "as it is",
        "loss": "2.00",
        "loss_range": "[0.00, 3.00]",
        "fine": "2.000",
        "fine_range": "[1.000, 3.000]",
        "share": "50%",
        "share_range": "[40, 61]%",
    }


def test_paired_is_ours_less_theirs_with_error_and_bound():
    found, gap = Found(), spread.paired(OURS, THEIRS)
    assert found.paired("a", OURS, THEIRS) == gap
    assert found.paired("b", OURS, THEIRS, 2, end="_paired") == gap
    assert found == {
        "a": gap.text(3),
        "a_bound": gap.bound(3),
        "b_paired": gap.text(2),
        "b_bound": gap.bound(2),
    }
    assert found["a"].startswith("\u2212")  # a loss below theirs


def test_against_is_the_median_of_differences_and_the_pair():
    found, gap = Found(), spread.paired(OURS, THEIRS)
    found.against("a", OURS, THEIRS, 2)
    assert found == {
        "a": "\u22120.50",
        "a_range": "[\u22121.00, 0.50]",
        "a_paired": gap.text(3),
        "a_bound": gap.bound(3),
    }
    found.against("b", [inf, 1.0, 2.0], [1.0, 1.0, 2.0])
    assert (found["b"], "b_paired" in found) == ("0.000", False)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [([1.0, inf], [1.0, 2.0]), ([1.0, 2.0], [nan, 1.0]), ([1.0], [1.0, 2.0])],
)
def test_a_failed_or_missing_run_leaves_no_pair(ours, theirs):
    found = Found()
    assert gap(ours, theirs) is found.paired("a", ours, theirs) is None
    assert found == {}
    assert not ahead(ours, [theirs])


def test_ahead_of_every_control_beyond_the_spread():
    losses = [1.0, 1.1, 1.2]
    higher, near = [2.0, 2.2, 2.1], [1.2, 1.0, 1.3]
    assert ahead(losses, [higher]) and ahead(losses, [])
    assert not ahead(higher, [losses])
    assert not ahead(losses, [higher, near])
    assert not ahead(losses, [higher, [inf, 2.0, 2.0]])
