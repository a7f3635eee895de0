"""Paired differences: values against tables of Student's t and of its power."""

from math import sqrt

import pytest

from scripts.measure.spread import noncentrality, paired, student


@pytest.mark.parametrize(
    ("freedom", "level", "t"),
    [
        (1, 0.95, 12.706),
        (2, 0.95, 4.303),
        (4, 0.95, 2.776),
        (9, 0.95, 2.262),
        (30, 0.95, 2.042),
        (4, 0.99, 4.604),
        (9, 0.90, 1.833),
    ],
)
def test_student_is_that_of_the_tables(freedom, level, t):
    assert student(freedom, level) == pytest.approx(t, abs=5e-4)


@pytest.mark.parametrize(
    ("effect", "pairs"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)]
)
def test_power_needs_the_pairs_of_the_tables(effect, pairs):
    """The least number of pairs for a power of 80 %, two-sided at 5 %."""
    assert noncentrality(pairs - 1) / sqrt(pairs) <= effect
    assert noncentrality(pairs - 2) / sqrt(pairs - 1) > effect


def test_power_by_simulation():
    import random

    draw, n, hits, tries = random.Random(0), 5, 0, 4000
    effect = noncentrality(n - 1) / sqrt(n)
    for _ in range(tries):
        ours = [draw.gauss(effect, 1) for _ in range(n)]
        hits += paired(ours, [0.0] * n).resolved
    assert hits / tries == pytest.approx(0.8, abs=0.02)


def test_paired_by_hand():
    found = paired([1.0, 2.0, 4.0], [1.5, 2.0, 3.0])  # differences -0.5, 0, 1
    assert found.mean == pytest.approx(1 / 6)
    assert found.error == pytest.approx(sqrt(7 / 12 / 3))  # variance 7/12
    assert found.n == 3 and not found.resolved
    assert found.text(2) == "0.17 ± 0.44"
    assert found.resolvable == pytest.approx(5.6535 * found.error, rel=1e-4)
    assert found.bound(2) == "2.49"


def test_pairing_sees_what_seeds_share():
    """Seeds scatter by 1, the arms differ by 0.1 in each: the pairs resolve it."""
    theirs = [1.0, 2.0, 3.0, 4.0, 5.0]
    found = paired([x - 0.1 - 0.01 * (i % 2) for i, x in enumerate(theirs)], theirs)
    assert found.resolved and found.text() == "−0.104 ± 0.002"


def test_no_scatter():
    same = paired([1.0, 2.0], [1.0, 2.0])
    assert not same.resolved and same.text(1) == "0.0 ± 0.0"
    assert paired([1.0, 2.0], [0.0, 1.0]).resolved


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [([1.0], [2.0]), ([1.0, 2.0], [1.0]), ([1.0, float("inf")], [1.0, 2.0])],
)
def test_what_cannot_be_paired_is_refused(ours, theirs):
    with pytest.raises(ValueError):
        paired(ours, theirs)
