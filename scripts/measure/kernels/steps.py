"""The steps of the benchmarks: what is timed, in the order of its worth.

A turn is run in every experiment before the next one begins. The first turns are the
HEADLINE: every operation at every width from 1k to 16k with all providers, the copy
that they are held against, QK-Norm at 128 features, and few rows. Then whole models
step by step, then the rest, and last whole models compiled.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from scripts.measure.kernels import rows, timing
from scripts.measure.kernels.cells import Cell, shape
from scripts.measure.records import Step

PROVIDERS = ("ours", "ours_again", "torch", "torch_unfused", "compile", "liger")
WIDTHS = (4096, 16384, 1024, 8192, 2048)  # a turn each
HEADLINE = range(len(WIDTHS))  # turns
MODELS, REST, LAST = range(len(WIDTHS), len(WIDTHS) + 3)
LOST = 75  # exit status: the device is lost, a new process can go on
# Seconds that a step is assumed to take on an H100, as long as none was timed. A
# provider: 10 samples of some 10 replays of 1.5 ms, and as much again for capture, gate
# and profiler. Compilers: what they take on two busy cores here is 0.5 a kernel of
# Triton's, and 0.9 and 2.0 for inductor with g++ at its end, forward and backward.
START = 20  # until the first step: imports, CUDA, inductor's first compilation
SECONDS = {"cell": 0.5, "provider": 0.35, "call": 0.1}
FORWARD = {"ours": 0.6, "liger": 0.6, "compile": 1.5}
BACKWARD = {"ours": 1.2, "liger": 1.2, "compile": 3.5}


def of(
    cells: Sequence[Cell],
    size: str,
    turn: int,
    names: Sequence[str] = PROVIDERS,
    calls: int = 0,
    cold: bool = True,
) -> list[Step]:
    """A step a cell: its providers, and beside them the stream that moves as much.

    `calls` and `cold` as for `rows.measured`.
    """
    rounds = 2 if size == "tiny" else timing.ROUNDS

    def run(cell: Cell) -> list[dict]:
        if not timing.alive():  # what was finished is in the journal
            print("the device is lost: run again to go on", file=sys.stderr)
            raise SystemExit(LOST)
        return rows.measured(cell, wanted(cell), rounds, calls, cold)

    def wanted(cell: Cell) -> list[str]:
        own = ["stream"] if cell.mix and "stream" not in names else []
        return [*names, *own]

    def cost(cell: Cell) -> float:
        each = SECONDS["provider"] + (calls > 0) * SECONDS["call"]
        first = BACKWARD if cell.backward else FORWARD
        compiled = sum(first.get(name, 0.0) for name in names)
        return SECONDS["cell"] + each * len(wanted(cell)) + compiled

    return [
        Step(asdict(cell), partial(run, cell), cost=cost(cell), turn=turn)
        for cell in cells
    ]


def copy(size: str) -> list[Step]:
    """A gigabyte, by a kernel and by torch."""
    shape = (64, 4096, "float32") if size == "tiny" else (65_536, 4096)
    return of([Cell("copy", *shape)], size, 0, ("stream", "torch"))


def sweep(operations: Sequence[str], size: str, added: int) -> list[Step]:
    """Operations against width, then wider rows.

    Of the last operation, the residual addition, only so many widths are headlines.
    """
    first, found = operations[0], copy(size)
    if size == "tiny":
        at = [(12, 16), (6, 24)]
        cells = [Cell(name, *each, "float32") for each in at for name in operations]
        return found + of(cells, size, 0, PROVIDERS[:4])
    rest = []
    for turn, width in enumerate(WIDTHS):
        *norms, last = (Cell(name, *shape(width)) for name in operations)
        found += of([*norms, last] if turn < added else norms, size, turn)
        rest += [] if turn < added else [last]
    wider = ((8192, 65_536), (8192, 32_768), (65_536, 2048), (16_384, 5000))
    rest += [Cell(first, *each) for each in wider]
    return found + of([*rest, Cell(first, 16_384, 4096, "float32")], size, REST)
