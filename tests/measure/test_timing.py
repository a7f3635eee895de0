"""Timing on fake clocks."""

import inspect
import random
import statistics
from itertools import pairwise
from types import SimpleNamespace

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
    tried = []
    assert timing.calibrate(lambda: tried.append(1), 1.0, lambda: 0.0, limit=100) == 100
    assert len(tried) == 1 + 10 + 100
    limits = inspect.signature(timing.calibrate).parameters
    assert limits["limit"].default == 2**20


def test_page_faults_are_per_call(monkeypatch):
    resource = pytest.importorskip("resource", reason="counts page faults")
    now = SimpleNamespace(ru_minflt=0)
    monkeypatch.setattr(resource, "getrusage", lambda _: SimpleNamespace(**vars(now)))

    def call():
        now.ru_minflt += 7

    assert timing.page_faults(call, 5) == timing.page_faults(call) == 7


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
