"""Two times for each call: the device's own, with cold caches, and the caller's.

Device time: a CUDA graph of launches that go round over independent sets of inputs
and outputs, together at least four times the L2 cache, so that no launch finds its
data there; `do_bench` times its replays. What cannot be captured has no such time.
Every provider gives one sample in every round, in rotated order; one that fails is
out, with its reason. On a CPU, for tests, both are wall-clock time.

Autograd runs a node on the stream on which its forward pass ran, and a graph takes up
one stream. So all that is timed, its inputs and forward passes too, lives on one
stream that is not the default one.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from math import ceil

L2 = 60 * 2**20  # bytes, and more where the card says so: too large is only slower
COLD = 4  # times the cache that the sets hold together
REPLAY = 1.5e-3  # seconds that one replay lasts at least
SAMPLE = 5e-3  # seconds of replays in one sample, after those that warm up
ROUNDS = 10

Call = Callable[[], object]


def cuda() -> bool:
    import torch

    return torch.cuda.is_available()


@cache
def stream():
    """The stream of all that is timed, current from now on; None without a GPU."""
    import torch

    if not cuda():
        return None
    made = torch.cuda.Stream()
    torch.cuda.synchronize()
    torch.cuda.set_stream(made)
    return made


def finish() -> None:
    import torch

    if cuda():
        torch.cuda.synchronize()


def alive() -> bool:
    """Whether the device still answers: after an illegal access nothing does."""
    try:
        finish()
    except RuntimeError:
        return False
    return True


def reason(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]


def sets_needed(bytes_of_one: int, least: int = 2) -> int:
    """How many sets of `bytes_of_one` bytes hold COLD times the cache."""
    import torch

    there = torch.cuda.get_device_properties(0).L2_cache_size if cuda() else 0
    return max(least, ceil(COLD * max(L2, there) / max(1, bytes_of_one)))


# On the device ------------------------------------------------------------


def captured(calls: Sequence[Call], launches: int):
    """A graph of `launches` calls; as many results as sets stay alive in it."""
    import torch

    for call in calls[:3]:
        call()
    graph, kept = torch.cuda.CUDAGraph(), [None] * len(calls)
    pool = torch.cuda.graph_pool_handle()
    try:
        with torch.cuda.graph(graph, pool=pool, stream=stream()):
            for launch in range(launches):
                # The oldest result makes room: outputs go round as inputs do.
                kept[launch % len(calls)] = calls[launch % len(calls)]()
    except Exception:
        # Until torch 2.11 a capture that fails leaves its allocator capturing.
        with suppress(RuntimeError):
            torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), pool)
        raise
    return graph


def benched(call: Call) -> float:
    """Seconds of a call, the median of a few; the cache is emptied before each."""
    from triton.testing import do_bench

    found = do_bench(call, warmup=1, rep=1e3 * SAMPLE, return_mode="median")
    return found / 1e3


def reading(work: Call) -> dict:
    """Clock, temperature and power while the device works; {} if nothing tells."""
    import torch

    work()
    try:
        return {
            "mhz": torch.cuda.clock_rate(),
            "celsius": torch.cuda.temperature(),
            "watt": torch.cuda.power_draw() / 1000,
        }
    except Exception:  # each version of torch has its own error for this
        return {}
    finally:
        finish()


class Timed:
    """A provider's calls, one a set, how they are sampled, and the samples.

    `work` runs `launches` calls; `method` is graph or wall.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls, self.sets, self.launches = calls, len(calls), len(calls)
        self.seconds: list[float] = []  # one number a round
        self.card = {}  # mhz, celsius, watt
        calls[0]()
        finish()
        self.method, self.work = "wall", lambda: [call() for call in calls]
        if cuda():
            self.method, self.work = "graph", self._graph()

    def _graph(self) -> Call:
        """A graph of all sets, once or as often as REPLAY needs."""
        graph = captured(self.calls, self.launches)
        spent = benched(graph.replay)
        if spent < REPLAY:
            self.launches *= ceil(REPLAY / spent)
            graph = captured(self.calls, self.launches)
        return graph.replay

    def sample(self) -> float:
        if self.method != "wall":
            return benched(self.work) / self.launches
        begun = time.perf_counter()
        self.work()
        return (time.perf_counter() - begun) / self.launches


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
    made = {
        n: _attempt(n, partial(Timed, each), failed) for n, each in providers.items()
    }
    samplers = {name: timed.sample for name, timed in made.items() if timed}
    found = {}
    for name, seconds in _rounds(samplers, rounds, failed).items():
        found[name] = made[name]
        found[name].seconds = seconds
        found[name].card = reading(made[name].work) if cuda() else {}
    return found


# For the caller -----------------------------------------------------------


def call_times(
    providers: dict[str, Sequence[Call]],
    rounds: int = ROUNDS,
    calls: int = 100,
    failed: dict[str, str] | None = None,
) -> dict[str, list[float]]:
    """Seconds a caller waits for one call: many calls, then one synchronization."""
    stream()

    def lasted(each: Sequence[Call], count: int) -> float:
        finish()
        begun = time.perf_counter()
        for i in range(count):
            each[i % len(each)]()
        finish()
        return (time.perf_counter() - begun) / count

    # What compiles or allocates does it now.
    first = {name: partial(lasted, each, 3) for name, each in providers.items()}
    left = _rounds(first, 1, failed)
    samplers = {name: partial(lasted, providers[name], calls) for name in left}
    return _rounds(samplers, rounds, failed)
