"""Two times for each call: the device's own, with cold caches, and the caller's.

Device time: a CUDA graph of many launches that go round over independent sets of
inputs and outputs, together at least four times the L2 cache, so that no launch
finds its data there. What cannot be captured is timed call by call with events,
after a write that flushes the cache; the reason is kept, and such a time is not
compared with those of graphs. Every provider gives one sample in every round, in
rotated order; one that fails is out, with its reason. On a CPU, for tests, both are
wall-clock time.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from scripts.measure.kernels.capture import (
    Flush,
    Pool,
    captured,
    reason,
    seconds,
    stream,
)
from scripts.measure.kernels.card import Card

L2 = 60 * 2**20  # bytes, an H200's; too large a guess for others is only slower
COLD = 4  # times the cache that the sets hold together
LEAST = 10e-3  # seconds that one replay lasts
MOST_LAUNCHES = 6000
ROUNDS = 30
WARM_UP = 0.05  # seconds of calls to each of several providers, and 25 calls at least

Call = Callable[[], object]


@dataclass(frozen=True)
class Timed:
    """Seconds for one call, one number a round; how they were taken."""

    method: str  # graph, event_flush, wall
    sets: int
    launches: int  # in one sample
    seconds: list[float]
    why: str | None = None  # there is no graph
    card: dict = field(default_factory=dict)


def cache_bytes() -> int:
    """The L2 cache of this device, and no less than an H200's."""
    import torch

    if not torch.cuda.is_available():
        return L2
    return max(L2, getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0))


def sets_needed(bytes_of_one: int, least: int = 2) -> int:
    """How many sets of `bytes_of_one` bytes hold COLD times the cache."""
    return max(least, ceil(COLD * cache_bytes() / max(1, bytes_of_one)))


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


class _Graph:
    method, why = "graph", None

    def __init__(self, calls: Sequence[Call], one: float, pool: Pool) -> None:
        self.card, self.calls, self.pool = Card(), calls, pool
        self._capture(one)
        first = self.sample()
        if first * self.launches < LEAST and self.launches < MOST_LAUNCHES:
            self._capture(first)  # the device is faster than the host

    def _capture(self, one: float) -> None:
        """A graph that lasts LEAST if a call takes `one` second."""
        wanted = min(MOST_LAUNCHES, ceil(LEAST / max(one, 1e-7)))
        self.launches = max(len(self.calls), wanted)
        self.graph = captured(self.calls, self.launches, self.pool)
        self.graph.replay()  # the first replay also loads the graph

    def sample(self) -> float:
        return seconds(self.graph.replay, self.card.look) / self.launches


class _Flushed:
    method, launches = "event_flush", 1

    def __init__(self, calls: Sequence[Call], why: str) -> None:
        self.calls, self.why, self.next = calls, why, 0
        self.flush, self.card = Flush(), Card()

    def sample(self) -> float:
        self.flush()
        self.next = (self.next + 1) % len(self.calls)
        return seconds(self.calls[self.next], self.card.look)


class _Wall:
    method, why = "wall", None

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls, self.launches, self.card = calls, len(calls), Card()

    def sample(self) -> float:
        begun = time.perf_counter()
        for call in self.calls:
            call()
        return (time.perf_counter() - begun) / self.launches


def _timer(calls: Sequence[Call], pool: Pool):
    import torch

    one = _warm(calls)
    if not torch.cuda.is_available():
        return _Wall(calls)
    try:
        return _Graph(calls, one, pool)
    except Exception as error:  # a call that allocates by itself, waits, ...
        why = f"no graph: {reason(error)}"
    torch.cuda.synchronize()
    return _Flushed(calls, why)


def _attempt(name: str, work: Callable, failed: dict[str, str] | None):
    """What the work gives. Its error is kept in `failed`, if there is one."""
    try:
        return work()
    except Exception as error:
        if failed is None:
            raise
        failed[name] = reason(error)
        return None


def _rounds(
    samplers: dict[str, Callable[[], float]],
    rounds: int,
    failed: dict[str, str] | None,
) -> dict[str, list[float]]:
    """One sample of each a round; who goes first changes every round."""
    samples: dict[str, list[float]] = {name: [] for name in samplers}
    for turn in range(rounds):
        names = list(samples)
        shift = turn % max(1, len(names))
        for name in names[shift:] + names[:shift]:
            found = _attempt(name, samplers[name], failed)
            if found is None:
                del samples[name]
            else:
                samples[name].append(found)
    return samples


def device_times(
    providers: dict[str, Sequence[Call]],
    rounds: int = ROUNDS,
    failed: dict[str, str] | None = None,
) -> dict[str, Timed]:
    """Time each provider's calls, one for each set, against the others'.

    The sets must be at least `sets_needed` many; all providers have the same.
    Whoever fails has no time; the reasons are put into `failed`. Without it the
    first error is raised. Forward passes belong on `stream()`, before this.
    """
    stream()
    pool, timers = Pool(), {}
    for name, calls in providers.items():
        if timer := _attempt(name, partial(_timer, calls, pool), failed):
            timers[name] = timer
    samplers = {name: timer.sample for name, timer in timers.items()}
    return {
        name: Timed(
            timers[name].method,
            len(providers[name]),
            timers[name].launches,
            found,
            timers[name].why,
            timers[name].card.summary(),
        )
        for name, found in _rounds(samplers, rounds, failed).items()
    }


def call_times(
    providers: dict[str, Sequence[Call]],
    rounds: int = ROUNDS,
    calls: int = 100,
    failed: dict[str, str] | None = None,
) -> dict[str, list[float]]:
    """Seconds a caller waits for one call: many calls, then one synchronization."""
    import torch

    stream()
    cuda = torch.cuda.is_available()

    def lasted(each: Sequence[Call], count: int) -> float:
        if cuda:
            torch.cuda.synchronize()
        begun = time.perf_counter()
        for i in range(count):
            each[i % len(each)]()
        if cuda:
            torch.cuda.synchronize()
        return (time.perf_counter() - begun) / count

    # What compiles or allocates does it now.
    first = {name: partial(lasted, each, 3) for name, each in providers.items()}
    left = _rounds(first, 1, failed)
    samplers = {name: partial(lasted, providers[name], calls) for name in left}
    return _rounds(samplers, rounds, failed)
