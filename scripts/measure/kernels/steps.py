"""The steps of an experiment: a cell with its providers, and the streams beside it."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial

from scripts.measure.kernels import capture, ceilings, edges, rows, timing
from scripts.measure.kernels.cells import OPERATIONS, Cell
from scripts.measure.records import Step

COST = {"compile": 8.0, "compile_tuned": 20.0}  # of a provider in a cell; others 1
LOST = 75  # exit status: the device is lost, a new process can go on


class Lost(SystemExit):
    """The device answers no more; what was finished is in the journal."""

    def __init__(self) -> None:
        print("the device is lost: run again to go on", file=sys.stderr, flush=True)
        super().__init__(LOST)


def streams(
    moved: int,
    mixes: Sequence[str],
    rounds: int,
    why: str,
    cell: Cell | None = None,
    cold: bool = True,
) -> list[dict]:
    """What plain streams of about so many bytes take: rows of operation `stream`.

    A stream of a cell's own bytes has the cell's shape, and its operation as the
    one that it stands beside.
    """
    capture.stream()
    made = []
    for mix in mixes:
        size, failed = ceilings.bytes_of(mix, moved), {}
        shape = cell or Cell("stream", size, 1)
        try:
            ways = ceilings.streams(mix, moved, rows.here(), rows.sets_of(size, cold))
            timed = timing.device_times(ways, rounds, failed)
        except Exception as error:
            if rows.interpreted():
                raise
            ways, timed = {mix: []}, {}
            failed = {mix: capture.reason(error)}
        for way in ways:
            found = {"bytes": size, "why": why, "beside": cell and cell.operation}
            if way in timed:
                found |= rows.columns(timed[way])
            else:
                found |= {"status": "failed", "why": failed[way]}
            made.append(rows.row(replace(shape, operation="stream"), way, **found))
    return made


def of(
    cells: Sequence[Cell],
    names: Sequence[str],
    size: str,
    *,
    only: Mapping[str, set[Cell]] | None = None,
    call_rounds: int = 0,
    calls: int = 100,
    cold: bool = True,
) -> list[Step]:
    """A step a cell: its providers, then the streams it is held against.

    `only` names the cells of a provider that is not timed in all. A sample of the
    caller's time is that of so many `calls`. The large
    streams run before the first cell of a process and every tenth, and after the last
    one: what lies between two of them that disagree is not compared.
    """
    rounds = 2 if size == "tiny" else timing.ROUNDS
    large = 4096 if size == "tiny" else ceilings.LARGE
    sweep = (2048, 8192) if size == "tiny" else ceilings.SWEEP
    calls = 2 if size == "tiny" else calls
    only = only or {}
    mixes = [OPERATIONS[cell.operation].mix for cell in cells]
    mixes = tuple(dict.fromkeys(("1R1W", *filter(None, mixes))))
    begun = []

    def wanted(cell: Cell) -> list[str]:
        return [name for name in names if cell in only.get(name, {cell})]

    def ceiling(sweeps: bool) -> list[dict]:
        found = streams(large, mixes, rounds, "large")
        for each in sweep if sweeps else ():
            found += streams(each, ("1R1W",), rounds, "sweep")
        return found

    def run(index: int, cell: Cell) -> list[dict]:
        if not capture.alive():
            raise Lost
        found, last = [], index == len(cells) - 1
        if not begun or index % ceilings.EVERY == 0:
            found += ceiling(index == 0)
            begun.append(index)
        found += rows.measured(cell, wanted(cell), rounds, call_rounds, cold, calls)
        if not capture.alive():
            return found  # its rows say why; the next cell ends the process
        operation = OPERATIONS[cell.operation]
        moved, own = operation.moved(cell), tuple(filter(None, [operation.mix]))
        found += streams(moved, own, rounds, "own size", cell, cold)
        return found + ceiling(True) if last else found

    return [
        Step(
            asdict(cell),
            partial(run, index, cell),
            cost=sum(COST.get(name, 1.0) for name in wanted(cell)),
        )
        for index, cell in enumerate(cells)
    ]


def of_edges(operations: Sequence[str], size: str) -> list[Step]:
    """A step an edge case: its providers at the gate, and nothing is timed."""

    def run(cell: Cell) -> list[dict]:
        if not capture.alive():
            raise Lost
        return rows.measured(cell, edges.PROVIDERS, rounds=0, cold=False)

    return [
        Step(asdict(cell), partial(run, cell), cost=3.0 if cell.case == "huge" else 0.3)
        for cell in edges.cells(operations, size)
    ]
