"""Two times for each call: the device's own, with cold caches, and the caller's.

Device time: a CUDA graph of many launches that go round over independent sets of
inputs and outputs, together at least four times the L2 cache, so that no launch
finds its data there. What cannot be captured is timed call by call with events,
after a write that flushes the cache. Every provider gives one sample in every
round, in rotated order. On a CPU, for tests, both are wall-clock time.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

L2 = 60 * 2**20  # bytes, an H200's; too large a guess for others is only slower
COLD = 4  # times the cache that the sets hold together
LEAST = 10e-3  # seconds that one replay lasts
MOST_LAUNCHES = 2000
ROUNDS = 30
FLUSH = 256 * 2**20  # bytes
WARM_UP = 0.2  # seconds of calls, and at least 25 of them

Call = Callable[[], object]


@dataclass(frozen=True)
class Timed:
    """Seconds for one call, one number a round; how they were taken."""

    method: str  # graph, event_flush, wall
    sets: int
    launches: int  # in one sample
    seconds: list[float]


def sets_needed(bytes_of_one: int, least: int = 2) -> int:
    """How many sets of `bytes_of_one` bytes hold COLD times the cache."""
    return max(least, ceil(COLD * L2 / max(1, bytes_of_one)))


def _warm(calls: Sequence[Call]) -> float:
    """Run for a while; seconds of one call."""
    import torch

    def finish():
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    calls[0]()
    finish()
    count, begun = 0, time.perf_counter()
    while count < 25 or time.perf_counter() - begun < WARM_UP:
        calls[count % len(calls)]()
        count += 1
        if count % 25 == 0:
            finish()
        if not torch.cuda.is_available() and count >= len(calls):
            break
    finish()
    return (time.perf_counter() - begun) / count


def _captured(calls: Sequence[Call], launches: int):
    """A graph of `launches` calls; as many results as sets stay alive in it."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for call in calls[:3]:
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph, kept = torch.cuda.CUDAGraph(), [None] * len(calls)
    with torch.cuda.graph(graph):
        for launch in range(launches):
            # The oldest result makes room: outputs go round as inputs do.
            kept[launch % len(calls)] = calls[launch % len(calls)]()
    return graph


def _events(work: Call) -> float:
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


class _Graph:
    method = "graph"

    def __init__(self, calls: Sequence[Call], one: float) -> None:
        wanted = max(len(calls), ceil(LEAST / max(one, 1e-7)))
        self.launches = max(len(calls), min(MOST_LAUNCHES, wanted))
        self.graph = _captured(calls, self.launches)
        first = _events(self.graph.replay) / self.launches
        if first * self.launches < LEAST and self.launches < MOST_LAUNCHES:
            # The caller's time misled: the device is faster than the host.
            self.launches = max(len(calls), min(MOST_LAUNCHES, ceil(LEAST / first)))
            self.graph = _captured(calls, self.launches)
        assert self.launches >= len(calls)

    def sample(self) -> float:
        return _events(self.graph.replay) / self.launches


class _Flushed:
    method, launches = "event_flush", 1

    def __init__(self, calls: Sequence[Call]) -> None:
        import torch

        self.calls, self.next = calls, 0
        self.scratch = torch.empty(FLUSH, dtype=torch.int8, device="cuda")

    def sample(self) -> float:
        self.scratch.zero_()
        self.next = (self.next + 1) % len(self.calls)
        return _events(self.calls[self.next])


class _Wall:
    method = "wall"

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls, self.launches = calls, len(calls)

    def sample(self) -> float:
        begun = time.perf_counter()
        for call in self.calls:
            call()
        return (time.perf_counter() - begun) / self.launches


def _timer(calls: Sequence[Call]):
    import torch

    one = _warm(calls)
    if not torch.cuda.is_available():
        return _Wall(calls)
    try:
        return _Graph(calls, one)
    except RuntimeError:  # a call that allocates by itself, or waits
        torch.cuda.synchronize()
        return _Flushed(calls)


def _rounds(samplers: dict[str, Callable[[], float]], rounds: int) -> dict[str, list]:
    """One sample of each a round; who goes first changes every round."""
    samples: dict[str, list[float]] = {name: [] for name in samplers}
    names = list(samplers)
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            samples[name].append(samplers[name]())
    return samples


def device_times(
    providers: dict[str, Sequence[Call]], rounds: int = ROUNDS
) -> dict[str, Timed]:
    """Time each provider's calls, one for each set, against the others'.

    The sets must be at least `sets_needed` many; all providers have the same.
    """
    timers = {name: _timer(calls) for name, calls in providers.items()}
    samples = _rounds({name: timer.sample for name, timer in timers.items()}, rounds)
    return {
        name: Timed(timer.method, len(providers[name]), timer.launches, samples[name])
        for name, timer in timers.items()
    }


def call_times(
    providers: dict[str, Sequence[Call]], rounds: int = ROUNDS, calls: int = 100
) -> dict[str, list[float]]:
    """Seconds a caller waits for one call: many calls, then one synchronization."""
    import torch

    cuda = torch.cuda.is_available()

    def seconds(each: Sequence[Call]) -> float:
        if cuda:
            torch.cuda.synchronize()
        begun = time.perf_counter()
        for i in range(calls):
            each[i % len(each)]()
        if cuda:
            torch.cuda.synchronize()
        return (time.perf_counter() - begun) / calls

    for each in providers.values():
        for i in range(3):  # what compiles or allocates does it now
            each[i % len(each)]()
    return _rounds(
        {name: partial(seconds, providers[name]) for name in providers}, rounds
    )


def card() -> dict:
    """Clock in MHz, temperature in °C and power in W of the card now; {} without."""
    import subprocess

    fields = "clocks.sm,temperature.gpu,power.draw"
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(
            command, capture_output=True, text=True, timeout=20
        ).stdout
        clock, heat, power = text.splitlines()[0].split(",")
        return {"mhz": int(clock), "celsius": int(heat), "watt": float(power)}
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return {}
