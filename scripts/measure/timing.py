"""Wall-clock timing on a CPU.

All providers of one question are timed together: in every round each gives
one sample, in random order, so that a busy moment or a falling clock hits
them alike. One function timed twice under two names (the A/A control) shows
the noise floor. Samples are kept raw; what is derived from them is in spread.py,
which no measurement imports, so that better statistics do not age a record.
"""

import contextlib
import ctypes
import gc
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Samples:
    """Seconds per call, one per round; each is a mean over ``inner`` calls."""

    inner: int
    seconds: list[float]


def _loop(call: Callable[[], object], inner: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(inner):
        call()
    return clock() - start


def calibrate(
    call: Callable[[], object],
    least: float,
    clock: Callable[[], float] = time.perf_counter,
    limit: int = 1 << 20,
) -> int:
    """How many calls one sample needs to last at least ``least`` seconds."""
    inner = 1
    while True:
        spent = _loop(call, inner, clock)
        if spent >= least or inner >= limit:
            return inner
        # Aim a quarter too high, at most tenfold: the first calls are slow.
        wanted = 1.25 * inner * least / spent if spent > 0 else 10 * inner
        inner = min(limit, max(inner + 1, min(int(wanted) + 1, 10 * inner)))


def time_together(
    providers: dict[str, Callable[[], object]],
    *,
    rounds: int,
    least: float = 5e-3,
    warmup: float = 0.05,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Samples]:
    """Time calls without arguments against each other.

    ``rounds`` samples each, every sample at least about ``least`` seconds
    long, after ``warmup`` seconds of calls to each provider. ``seed`` fixes
    the order within the rounds.
    """
    order = random.Random(seed)
    for call in providers.values():
        end = clock() + warmup
        call()
        while clock() < end:
            call()
    inner = {name: calibrate(call, least, clock) for name, call in providers.items()}
    seconds: dict[str, list[float]] = {name: [] for name in providers}
    names = list(providers)
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            order.shuffle(names)
            for name in names:
                spent = _loop(providers[name], inner[name], clock)
                seconds[name].append(spent / inner[name])
    finally:
        if collecting:
            gc.enable()
    return {name: Samples(inner[name], seconds[name]) for name in providers}


@contextlib.contextmanager
def fixed_threads(count: int) -> Iterator[int]:
    """Let torch use exactly ``count`` threads, then as many as before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def freed_memory(keep: bool) -> Iterator[bool]:
    """Let glibc keep freed memory, or return it to the system at once.

    By default glibc adapts: whether a freed temporary comes back with its
    pages mapped, or costs a page fault for every 4 KiB, depends on what the
    process did before. Both settings here are fixed, so samples do not depend
    on their history. Yields False where the C library is not glibc: nothing
    is set there. Afterwards memory is returned as glibc's defaults say. Memory
    that was kept earlier in the same process may be used again: time what is to
    return its memory first.
    """
    try:
        library = ctypes.CDLL(None)
        mallopt, trim = library.mallopt, library.malloc_trim
    except (OSError, AttributeError, TypeError):
        yield False
        return
    trim_threshold, mmap_threshold, mmap_max = -1, -3, -4  # malloc.h
    default = ((mmap_max, 65536), (mmap_threshold, 2**17), (trim_threshold, 2**17))
    keeping = ((mmap_max, 0), (trim_threshold, -1))
    done = [mallopt(*option) for option in (keeping if keep else default)]
    trim(0)
    try:
        yield all(done)
    finally:
        for option in default:
            mallopt(*option)
        trim(0)


def page_faults(call: Callable[[], object], calls: int = 3) -> float | None:
    """Pages that one call makes the system map; None where nobody counts them."""
    try:
        import resource
    except ImportError:
        return None
    call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        call()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / calls
