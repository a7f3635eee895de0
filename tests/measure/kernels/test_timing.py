"""Rotation, graphs, fallbacks, readings of the card: on a CPU, with small fakes."""

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
import torch

from scripts.measure.kernels import timing


def test_sets_are_four_times_the_cache(monkeypatch):
    for moved in (1000, 10**6, 64 * 2**20, 10**10):
        sets = timing.sets_needed(moved)
        assert sets >= 2
        assert sets * moved >= 4 * timing.L2
        assert sets == 2 or (sets - 1) * moved < 4 * timing.L2
    few = timing.sets_needed(2**20)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    made = SimpleNamespace(L2_cache_size=2 * timing.L2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: made)
    assert timing.sets_needed(2**20) == 2 * few


# Rounds -------------------------------------------------------------------


class Sampled:
    """A timer that writes down its turns, and fails after so many."""

    def __init__(self, calls):
        self.name, self.left = calls[0]()

    def sample(self):
        if self.left == 0:
            raise RuntimeError(f"{self.name} is out")
        self.left -= 1
        ORDER.append(self.name)
        return 1.0


ORDER: list[str] = []


@pytest.fixture
def order(monkeypatch):
    monkeypatch.setattr(timing, "Timed", Sampled)
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
    assert timing.device_times(named(a=0, b=0), 3, failed) == {}
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
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "a pool")
    monkeypatch.setattr(timing, "stream", lambda: "a stream")
    for name, value in (("clock_rate", 1980), ("temperature", 40), ("power_draw", 6e5)):
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)


@pytest.mark.parametrize(
    ("each", "sets", "launches"),
    [(1e-3, 2, 2), (50e-6, 2, 30), (2.5e-6, 4, 600), (1.0, 3, 3)],
)
def test_a_graph_holds_whole_rounds_of_sets(cuda, monkeypatch, each, sets, launches):
    """As many as last REPLAY; a sample is the time of one launch."""
    asked = []

    def captured(calls, launches):
        asked.append(launches)
        return SimpleNamespace(replay=lambda: launches * each)

    monkeypatch.setattr(timing, "captured", captured)
    monkeypatch.setattr(timing, "benched", lambda replay: replay())
    found = timing.device_times({"a": [lambda: None] * sets}, rounds=3)["a"]
    assert (found.method, found.launches) == ("graph", launches)
    assert asked == [sets, launches][: 1 + (launches > sets)]
    assert found.seconds == pytest.approx([each] * 3)
    assert found.card == {"mhz": 1980, "celsius": 40, "watt": 600.0}


def test_what_has_no_graph_says_why_and_is_timed_call_by_call(cuda, monkeypatch):
    def refused(calls, launches):
        raise RuntimeError("operation not permitted\nwhen stream is capturing")

    seen = []
    monkeypatch.setattr(timing, "captured", refused)
    monkeypatch.setattr(timing, "benched", lambda call: call() or 1.0)
    calls = [lambda i=i: seen.append(i) for i in range(2)]
    found = timing.device_times({"a": calls}, rounds=3)["a"]
    assert found.method == "do_bench" and found.launches == 1
    assert found.why == "no graph: RuntimeError: operation not permitted"
    assert seen[:4] == [0, 0, 1, 0]  # the first one compiles


@pytest.mark.parametrize("fails", [False, True])
def test_a_graph_is_taken_up_on_the_stream_of_the_forward_pass(
    cuda, monkeypatch, fails
):
    """And a capture that fails leaves no allocator capturing."""
    order, given, ended = [], [], []

    @contextmanager
    def graph(made, **options):
        given.append(options)
        yield
        if fails:
            raise RuntimeError("capture failed")

    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: "a graph")
    end = "_cuda_endAllocateToPool"
    monkeypatch.setattr(torch._C, end, lambda *of: ended.append(of), raising=False)
    calls = [lambda i=i: order.append(i) for i in range(2)]
    with pytest.raises(RuntimeError, match="failed") if fails else nullcontext():
        assert timing.captured(calls, 5) == "a graph"
    assert order == [0, 1, *[0, 1, 0, 1, 0]]
    assert given == [{"pool": "a pool", "stream": "a stream"}]
    assert ended == [(0, "a pool")] * fails


def test_a_device_that_does_not_answer_is_lost(monkeypatch):
    assert timing.alive()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    def illegal():
        raise RuntimeError("an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "synchronize", illegal)
    assert not timing.alive()
