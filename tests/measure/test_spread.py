"""Statistics: values against exact ones, tables of Student's t and of its power."""

import random
from math import comb, inf, sqrt

import pytest

from scripts.measure import spread
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


# Medians and their ratios -----------------------------------------------------


@pytest.mark.parametrize(
    ("n", "low", "high"), [(5, 1, 5), (6, 1, 6), (9, 2, 8), (20, 6, 15), (41, 14, 28)]
)
def test_median_interval_has_the_textbook_ranks(n, low, high):
    samples = list(range(1, n + 1))
    random.Random(0).shuffle(samples)
    assert spread.median_interval(samples) == (low, high)


@pytest.mark.parametrize("n", [6, 7, 20, 41, 101])
def test_median_interval_is_the_narrowest_with_the_level(n):
    low, high = spread.median_interval(range(1, n + 1))

    def coverage(rank):  # P(x_(rank) <= median <= x_(n + 1 - rank))
        return 1 - 2 * sum(comb(n, k) for k in range(rank)) / 2**n

    assert low + high == n + 1
    assert coverage(low) >= 0.95 > coverage(low + 1)


def test_ratio_of_medians_not_of_means():
    assert spread.ratio([2, 2, 50], [1, 1, 1]) == 2


def test_paired_bootstrap_cancels_what_hits_both_sides():
    noise = random.Random(0)
    drift = [1 + noise.random() for _ in range(60)]
    over = [2 * d for d in drift]
    low, high = spread.ratio_interval(over, drift)
    assert (low, high) == pytest.approx((2, 2))
    low, high = spread.ratio_interval(over, drift[:-1])  # cannot be paired
    assert high - low > 0.1


def test_bootstrap_interval_is_seeded_and_covers():
    noise = random.Random(1)
    covered = 0
    for _ in range(40):
        over = [noise.gauss(3, 0.3) for _ in range(40)]
        under = [noise.gauss(2, 0.2) for _ in range(40)]
        low, high = spread.ratio_interval(over, under, resamples=300)
        assert (low, high) == spread.ratio_interval(over, under, resamples=300)
        covered += low <= 1.5 <= high
    assert covered >= 34


def test_tie_and_noise_floor():
    floor = spread.noise_floor([(0.98, 1.01), (0.99, 1.04), (0.95, 1.02)])
    assert floor == pytest.approx(1 / 0.95 - 1)
    assert spread.unresolved((1.04, 1.2), floor)
    assert spread.unresolved((0.8, 0.96), floor)
    assert spread.unresolved((0.5, 2.0), floor)
    assert not spread.unresolved((1.06, 1.2), floor)
    assert not spread.unresolved((0.8, 0.94), floor)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.125, 2, "0.12"),
        (1234.5678, 3, "1234.568"),
        (-0.5, 1, "\u22120.5"),
        (-0.004, 2, "0.00"),
        (-0.004, 3, "\u22120.004"),
        (inf, 2, "∞"),
        (-inf, 2, "\u2212∞"),
    ],
)
def test_numbers_as_people_write_them(value, digits, text):
    assert spread.number(value, digits) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (4096, "4096"), (9999.4, "9999"), (10_000, "10,000")],
)
def test_whole_numbers_in_threes_from_five_digits_on(value, text):
    assert spread.integer(value) == text


def test_a_span_is_from_the_least_to_the_greatest():
    assert spread.span([0.25, -0.1, 0.2]) == "[\u22120.10, 0.25]"
    assert spread.span([3.0, inf], 0) == "[3, ∞]"


@pytest.mark.parametrize(
    ("level", "ends"), [(0.95, (51, 1950)), (0.5, (501, 1500)), (0.99, (11, 1990))]
)
def test_a_bootstrap_interval_leaves_half_of_the_rest_at_each_end(
    level, ends, monkeypatch
):
    """Of the ratios 1 to 2000, each drawn once."""
    draws = [([k], 0) for k in range(2000)]
    monkeypatch.setattr(spread, "_draws", lambda *_: draws)
    over, under = range(1, 2001), [1] * 2000
    assert spread.ratio_interval(over, under, level=level) == ends


def test_how_a_ratio_is_drawn_by_default():
    draw = random.Random(0)
    over, under = ([draw.random() for _ in range(n)] for n in (99, 90))
    usual = dict(level=0.95, resamples=2000, seed=0)
    assert spread.ratio_interval(over, under) == spread.ratio_interval(
        over, under, **usual
    )
    for other in ({"level": 0.9}, {"resamples": 50}, {"seed": 1}):
        found = spread.ratio_interval(over, under, **usual | other)
        assert found != spread.ratio_interval(over, under)


def test_an_interval_that_touches_the_floor_is_not_resolved():
    assert spread.noise_floor([(1.0, 1.0)]) == 0
    assert spread.noise_floor([(1.0, 1.25)]) == 0.25
    assert spread.noise_floor([(0.8, 1.0)]) == 0.25
    assert spread.unresolved((1.25, 2.0), 0.25)
    assert spread.unresolved((0.5, 0.8), 0.25)
    assert spread.unresolved((1.0, 1.0), 0)
