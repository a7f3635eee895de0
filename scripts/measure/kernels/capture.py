"""CUDA's side of a time: one stream, graphs on it, events, a device that answers.

Autograd runs a node on the stream on which its forward pass ran, and a graph takes
up one stream. So everything that is timed, its inputs and its forward passes too,
lives on one stream that is not the default one.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache

FLUSH = 256 * 2**20  # bytes, written to empty the cache
AHEAD = 2_000_000  # cycles that the device sleeps while the host enqueues: 1 ms

Call = Callable[[], object]


@cache
def stream():
    """The stream of all that is timed, current from now on; None without a GPU."""
    import torch

    if not torch.cuda.is_available():
        return None
    made = torch.cuda.Stream()
    torch.cuda.synchronize()
    torch.cuda.set_stream(made)
    return made


def alive() -> bool:
    """Whether the device still answers: after an illegal access nothing does."""
    import torch

    if not torch.cuda.is_available():
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def reason(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]


class Pool:
    """The memory that the graphs of one cell share: no two replays overlap."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        import torch

        cuda = torch.cuda.is_available()
        self.handle = torch.cuda.graph_pool_handle() if cuda else None


def captured(calls: Sequence[Call], launches: int, pool: Pool):
    """A graph of `launches` calls; as many results as sets stay alive in it."""
    import torch

    for call in calls[:3]:
        call()
    graph, kept = torch.cuda.CUDAGraph(), [None] * len(calls)
    try:
        with torch.cuda.graph(graph, pool=pool.handle, stream=stream()):
            for launch in range(launches):
                # The oldest result makes room: outputs go round as inputs do.
                kept[launch % len(calls)] = calls[launch % len(calls)]()
    except Exception:
        # Until torch 2.11 a capture that fails leaves its allocator capturing.
        with suppress(RuntimeError):
            device = torch.cuda.current_device()
            torch._C._cuda_endAllocateToPool(device, pool.handle)
        pool.renew()
        raise
    return graph


def seconds(work: Call, meanwhile: Call = lambda: None) -> float:
    """Of the work on the device, by events; the host does `meanwhile` as it waits."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    meanwhile()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


class Flush:
    """A write that empties the cache, and a pause in which the host runs ahead."""

    def __init__(self) -> None:
        import torch

        self.scratch = torch.empty(FLUSH, dtype=torch.int8, device="cuda")

    def __call__(self) -> None:
        import torch

        self.scratch.zero_()
        torch.cuda._sleep(AHEAD)
