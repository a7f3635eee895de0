"""Timing on fake clocks, and statistics against exact values."""

import random
import statistics
from itertools import pairwise
from math import comb, inf

import pytest

from scripts.measure import spread, timing


class FakeClock:
    """A clock that only the timed calls move."""

    def __init__(self):
        self.now = 0.0
        self.log = []

    def __call__(self):
        return self.now

    def call(self, name, seconds):
        def run():
            self.now += seconds
            self.log.append(name)

        return run


def test_seconds_are_per_call_whatever_the_inner_loop():
    clock = FakeClock()
    found = timing.time_together(
        {"fast": clock.call("fast", 1e-6), "slow": clock.call("slow", 1e-2)},
        rounds=5,
        least=5e-3,
        clock=clock,
    )
    assert found["slow"].inner == 1
    assert found["fast"].inner * 1e-6 >= 5e-3
    for name, seconds in (("fast", 1e-6), ("slow", 1e-2)):
        assert len(found[name].seconds) == 5
        assert found[name].seconds == pytest.approx([seconds] * 5, rel=1e-6)


def test_providers_are_interleaved_in_an_order_that_the_seed_fixes():
    def order(seed):
        clock = FakeClock()
        calls = {name: clock.call(name, 1.0) for name in "abcd"}
        timing.time_together(
            calls, rounds=20, least=0.5, warmup=0, seed=seed, clock=clock
        )
        return clock.log[-80:]

    log = order(0)
    rounds = [log[i : i + 4] for i in range(0, 80, 4)]
    assert all(sorted(r) == list("abcd") for r in rounds)
    assert len({tuple(r) for r in rounds}) > 10
    assert order(0) == log != order(1)


def test_every_provider_is_warmed_up_first():
    clock = FakeClock()
    calls = {name: clock.call(name, 1e-3) for name in "ab"}
    timing.time_together(calls, rounds=1, least=1e-4, warmup=0.1, clock=clock)
    assert clock.log[:100] == ["a"] * 100
    assert 98 <= clock.log.count("b") <= 104


def test_calibration_ends_on_a_clock_that_does_not_move():
    assert timing.calibrate(lambda: None, 1.0, lambda: 0.0, limit=1000) == 1000


def test_garbage_collection_is_off_only_while_timing():
    import gc

    states = []
    timing.time_together(
        {"a": lambda: states.append(gc.isenabled())}, rounds=2, least=1e-9, warmup=0
    )
    assert states[-1] is False
    assert gc.isenabled()


def test_fixed_threads_come_back():
    torch = pytest.importorskip("torch", reason="threads are torch's")
    before = torch.get_num_threads()
    with timing.fixed_threads(1) as threads:
        assert threads == torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


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


def test_a_control_on_a_noisy_clock_is_a_tie():
    noise = random.Random(2)
    clock = FakeClock()

    def call():
        clock.now += abs(noise.gauss(1e-3, 1e-4))

    found = timing.time_together({"a": call, "b": call}, rounds=41, clock=clock)
    interval = spread.ratio_interval(found["a"].seconds, found["b"].seconds)
    assert spread.unresolved(interval, spread.noise_floor([interval]))
    assert statistics.median(found["a"].seconds) == pytest.approx(1e-3, rel=0.1)


def test_calibration_grows_without_overshooting():
    clock = FakeClock()
    tried = []
    call = clock.call("a", 1e-6)
    plain = timing._loop

    def counted(call, inner, clock):
        tried.append(inner)
        return plain(call, inner, clock)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "_loop", counted)
        inner = timing.calibrate(call, 5e-3, clock)
    assert 5000 <= inner <= 7500
    assert all(b <= 10 * a for a, b in pairwise(tried))
