"""Times with their spread: ``make bench``, or ``python -m tests.bench NAME ...``.

Each line is a median over runs on this machine, with the fastest and the slowest.
Nothing here passes or fails.
"""

import statistics
import sys
from collections.abc import Callable, Iterator

from tests.bench import engine, reload, search, site_build

# By name: yields (what, seconds) pairs, one for each run.
BENCHES: dict[str, Callable[[], Iterator[tuple[str, float]]]] = {
    "site": site_build.seconds,
    "reload": reload.seconds,
    "engine": engine.seconds,
    "search": search.seconds,
}


def line(what: str, seconds: list[float]) -> str:
    """One line: median, fastest and slowest."""
    low, middle, high = min(seconds), statistics.median(seconds), max(seconds)
    unit, scale = ("s", 1) if middle >= 1 else ("ms", 1000)
    low, middle, high = (f"{scale * each:.3g}" for each in (low, middle, high))
    return f"{what}: {middle} {unit}, median of {len(seconds)} ({low} to {high} {unit})"


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in BENCHES]:
        print(f"no bench {unknown[0]!r}; there are: {', '.join(BENCHES)}")
        return 1
    for name in names or BENCHES:
        times: dict[str, list[float]] = {}
        for what, seconds in BENCHES[name]():
            times.setdefault(what, []).append(seconds)
        for what, runs in times.items():
            print(line(what, runs), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
