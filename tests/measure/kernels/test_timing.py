"""Rotation, graphs, fallbacks, readings of the card: on a CPU, with small fakes."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from scripts.measure.kernels import capture, card, timing


def test_sets_are_four_times_the_cache():
    for moved in (1000, 10**6, 64 * 2**20, 10**10):
        sets = timing.sets_needed(moved)
        assert sets >= 2
        assert sets * moved >= 4 * timing.L2
        assert sets == 2 or (sets - 1) * moved < 4 * timing.L2


def test_a_larger_cache_needs_more_sets(monkeypatch):
    few = timing.sets_needed(2**20)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    made = SimpleNamespace(L2_cache_size=2 * timing.L2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: made)
    assert timing.sets_needed(2**20) == 2 * few


# Rounds -------------------------------------------------------------------


class Sampled:
    """A timer that writes down its turns, and fails after so many."""

    method, launches, why = "fake", 1, None

    def __init__(self, calls, pool):
        self.name, self.left = calls[0]()
        self.card = card.Card()

    def sample(self):
        if self.left == 0:
            raise RuntimeError(f"{self.name} is out")
        self.left -= 1
        ORDER.append(self.name)
        return 1.0


ORDER: list[str] = []


@pytest.fixture
def order(monkeypatch):
    monkeypatch.setattr(timing, "_timer", Sampled)
    ORDER.clear()
    return ORDER


def named(**turns):
    return {name: [lambda pair=(name, left): pair] for name, left in turns.items()}


def test_every_provider_gives_a_sample_a_round_in_rotated_order(order):
    found = timing.device_times(named(a=9, b=9, c=9), rounds=4)
    assert "".join(order) == "abc" + "bca" + "cab" + "abc"
    assert all(len(each.seconds) == 4 for each in found.values())


def test_who_fails_is_out_and_the_others_go_on(order):
    failed = {}
    found = timing.device_times(named(a=9, b=1, c=9), 4, failed)
    assert failed == {"b": "RuntimeError: b is out"}
    assert list(found) == ["a", "c"]
    assert all(len(each.seconds) == 4 for each in found.values())
    with pytest.raises(RuntimeError, match="b is out"):
        timing.device_times(named(a=9, b=1), 4)


def test_nobody_is_left(order):
    failed = {}
    assert timing.device_times(named(a=0, b=0), 3, failed) == {}
    assert list(failed) == ["a", "b"]
    assert timing.call_times({}, 3, 2, failed) == {}


def test_calls_go_round_over_the_sets():
    seen = []
    calls = [lambda i=i: seen.append(i) for i in range(3)]
    timing.call_times({"a": calls}, rounds=1, calls=7)
    assert seen == [0, 1, 2, *[0, 1, 2, 0, 1, 2, 0]]


# Graphs -------------------------------------------------------------------


@pytest.fixture
def cuda(monkeypatch):
    """As much of a device as the code asks for before a kernel runs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    handles = iter(range(100))
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: next(handles))
    monkeypatch.setattr(timing, "stream", lambda: "a stream")
    monkeypatch.setattr(capture, "stream", lambda: "a stream")
    monkeypatch.setattr(timing, "WARM_UP", 0)


class Graphs:
    """Captures that last `each` second a launch; what they were asked for."""

    def __init__(self, each):
        self.each, self.launches = each, []

    def captured(self, calls, launches, pool):
        self.launches.append(launches)
        return SimpleNamespace(replay=lambda: launches * self.each)

    def seconds(self, work, meanwhile):
        meanwhile()
        return work()


@pytest.mark.parametrize(
    ("each", "sets", "launches"),
    [(1e-3, 2, 10), (50e-6, 2, 200), (2.5e-6, 4, 4000), (1e-7, 2, 6000), (1.0, 3, 3)],
)
def test_a_graph_lasts_ten_milliseconds(cuda, monkeypatch, each, sets, launches):
    graphs = Graphs(each)
    monkeypatch.setattr(timing, "captured", graphs.captured)
    monkeypatch.setattr(timing, "seconds", graphs.seconds)
    monkeypatch.setattr(timing, "Card", lambda: SimpleNamespace(look=lambda: None))
    timer = timing._Graph([lambda: None] * sets, 1.0, capture.Pool())
    assert timer.launches == graphs.launches[-1]
    assert timer.launches in (launches, launches + 1)  # rounding
    assert timer.sample() == pytest.approx(each)
    assert len(graphs.launches) <= 2


def test_what_has_no_graph_says_why_and_is_timed_by_events(cuda, monkeypatch):
    def refused(calls, launches, pool):
        raise RuntimeError("operation not permitted\nwhen stream is capturing")

    flushed = []
    monkeypatch.setattr(timing, "captured", refused)
    monkeypatch.setattr(timing, "Flush", lambda: lambda: flushed.append("flush"))
    monkeypatch.setattr(timing, "seconds", lambda work, look: work() or look() or 1.0)
    monkeypatch.setattr(card, "reading", lambda: {"mhz": 1, "celsius": 2, "watt": 3.0})
    calls = [lambda i=i: flushed.append(i) for i in range(2)]
    found = timing.device_times({"a": calls}, rounds=3)["a"]
    assert found.method == "event_flush" and found.launches == 1
    assert found.why == "no graph: RuntimeError: operation not permitted"
    assert found.card == {"mhz": 1, "least_mhz": 1, "celsius": 2, "watt": 3.0}
    assert flushed[-6:] == ["flush", 1, "flush", 0, "flush", 1]


@pytest.fixture
def graphs(cuda, monkeypatch):
    """torch's captures, with what they were given; `fails` makes the end raise."""
    seen = SimpleNamespace(given=[], ended=[], fails=False)

    @contextmanager
    def graph(made, **given):
        seen.given.append(given)
        yield
        if seen.fails:
            raise RuntimeError("capture failed")

    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: "a graph")
    end = "_cuda_endAllocateToPool"
    monkeypatch.setattr(torch._C, end, lambda *of: seen.ended.append(of), raising=False)
    return seen


def test_a_graph_is_taken_up_on_the_stream_of_the_forward_pass(graphs):
    order, pool = [], capture.Pool()
    calls = [lambda i=i: order.append(i) for i in range(2)]
    assert capture.captured(calls, 5, pool) == "a graph"
    assert order == [0, 1, *[0, 1, 0, 1, 0]]
    assert graphs.given == [{"pool": pool.handle, "stream": "a stream"}]
    assert not graphs.ended


def test_a_capture_that_fails_leaves_no_allocator_capturing(graphs):
    graphs.fails, pool = True, capture.Pool()
    before = pool.handle
    with pytest.raises(RuntimeError, match="capture failed"):
        capture.captured([lambda: None], 1, pool)
    assert graphs.ended == [(0, before)]
    assert pool.handle != before


def test_a_device_that_does_not_answer_is_lost(monkeypatch):
    assert capture.alive()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    def illegal():
        raise RuntimeError("an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "synchronize", illegal)
    assert not capture.alive()
