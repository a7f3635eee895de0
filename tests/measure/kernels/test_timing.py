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


def test_every_provider_gives_a_sample_a_round_and_who_fails_is_out():
    order, failed = [], {}

    def sampler(name, left):
        def sample():
            order.append(name)
            return 1 / (left - order.count(name) + 1)

        return sample

    def rounds(failed, **left):
        order.clear()
        return timing._rounds({n: sampler(n, left[n]) for n in left}, 4, failed)

    assert rounds(None, a=9, b=9, c=9).keys() == {"a", "b", "c"}
    assert "".join(order) == "abc" + "bca" + "cab" + "abc"
    found = rounds(failed, a=9, b=1, c=9)
    assert failed == {"b": "ZeroDivisionError: division by zero"}
    assert {name: len(each) for name, each in found.items()} == {"a": 4, "c": 4}
    with pytest.raises(ZeroDivisionError):
        rounds(None, a=9, b=1)
    assert rounds(failed, a=0, b=0) == {}


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
