"""Times with their spread: ``make bench``, or ``python -m tests.bench NAME ...``.

Each line is a median over runs on this machine, with the fastest and the slowest; the
engine's deviations are a table. Nothing here passes or fails.
"""

import statistics
import sys
from collections.abc import Callable, Iterable, Iterator

from tests.bench import deviations, engine, reload, search, site_build


def timed(runs: Iterable[tuple[str, float]]) -> Iterator[str]:
    """A line for each thing of which there are (what, seconds), one for each run."""
    times: dict[str, list[float]] = {}
    for what, seconds in runs:
        times.setdefault(what, []).append(seconds)
    yield from (line(what, seconds) for what, seconds in times.items())


def line(what: str, seconds: list[float]) -> str:
    """One line: median, fastest and slowest."""
    low, middle, high = min(seconds), statistics.median(seconds), max(seconds)
    unit, scale = ("s", 1) if middle >= 1 else ("ms", 1000)
    low, middle, high = (f"{scale * each:.3g}" for each in (low, middle, high))
    return f"{what}: {middle} {unit}, median of {len(seconds)} ({low} to {high} {unit})"


BENCHES: dict[str, Callable[[], Iterator[str]]] = {
    "site": lambda: timed(site_build.seconds()),
    "reload": lambda: timed(reload.seconds()),
    "engine": lambda: timed(engine.seconds()),
    "deviations": deviations.lines,
    "search": lambda: timed(search.seconds()),
}


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in BENCHES]:
        print(f"no bench {unknown[0]!r}; there are: {', '.join(BENCHES)}")
        return 1
    for name in names or BENCHES:
        for said in BENCHES[name]():
            print(said, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
