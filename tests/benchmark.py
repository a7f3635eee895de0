"""What every benchmark of kernels must hold, at a size that a CPU can interpret."""

from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType

import pytest

from scripts.measure.kernels import edges
from scripts.measure.kernels.cells import OPERATIONS
from scripts.measure.records import Record, rows_problem
from tests.tiny import (
    check_facts_and_words,
    draw,
    select,
    timed_by_bytes,
    tiny_record,
)

GPU = {"device": {"name": "A GPU", "kind": "gpu"}}


def gpu_record(experiment: ModuleType, rows: list[dict]) -> Record:
    """The rows as if a GPU had made them."""
    name = experiment.__name__.rpartition(".")[2]
    return tiny_record(name, rows, experiment.SEEDS, **GPU)


def check_rows(experiment: ModuleType, rows: list[dict]) -> None:
    """Ours passes its gate at both shapes, beside streams of its own mix."""
    assert rows_problem(list(rows[0]), rows) is None
    assert not select(rows, status="wrong")
    assert not select(rows, status="failed")
    for operation in experiment.OPERATIONS:
        ours = select(rows, operation=operation, provider="ours", case="")
        assert len(ours) == 2
        assert all(row["status"] == "ok" and row["same_bits"] for row in ours)
        mix = OPERATIONS[operation].mix
        own = select(rows, operation="stream", provider=mix, beside=operation)
        assert len(own) == len(ours)
        assert select(rows, operation="stream", provider=mix, why="large")
    assert len(select(rows, provider="1R1W_copy", why="large")) == 2  # first and last


def check_edges(
    experiment: ModuleType, rows: list[dict], operations: Sequence[str] | None = None
) -> None:
    """Ours and torch's norms get every case right that fits here; none has a time."""
    found = [row for row in rows if row["case"]]
    assert {row["provider"] for row in found} == set(edges.PROVIDERS)
    assert not any(row["device_seconds"] or row["call_seconds"] for row in found)
    for operation in operations or experiment.OPERATIONS:
        here = set(edges.cases_of(operation)) - {"huge"}
        passed = select(found, operation=operation, provider="ours", status="ok")
        assert {row["case"] for row in passed} == here
        assert all(row["same_bits"] for row in passed)
        fair = select(found, operation=operation, provider="torch", status="ok")
        assert {row["case"] for row in fair} == (here if "norm" in operation else set())
    facts = experiment.facts(gpu_record(experiment, rows))
    ours = select(found, provider="ours")
    assert facts["edges"] == facts["edges_passed"] == str(len(ours))
    assert facts["wrong"] == "0"


def check_cells(experiment: ModuleType) -> None:
    """No cell twice, and more of them where there is a GPU."""
    counts = []
    for size in ("tiny", "small", "full"):
        cells = [repr(step.cell) for step in experiment.measure(size)]
        assert len(set(cells)) == len(cells)
        counts.append(len(cells))
    tiny, small, full = counts
    assert tiny < small <= full


def check_gaps(experiment: ModuleType, record: Record) -> None:
    """Facts and figures also of records in which ours is wrong, or nothing ran."""
    timed = {"device_seconds": None, "call_seconds": None}
    first = record.rows[0]["operation"]

    def changed(wanted, **changes):
        rows = [{**r, **changes} if wanted(r) else r for r in record.rows]
        return replace(record, rows=rows)

    def ours(row):
        return row["provider"].startswith("ours")

    for damaged in (
        changed(ours, status="wrong", relative=[None], **timed),
        changed(
            lambda r: ours(r) and r["operation"] == first, status="failed", **timed
        ),
        changed(lambda r: r["operation"] == "stream", status="failed", **timed),
        changed(lambda r: True, status="failed", **timed),
        replace(record, rows=record.rows[:1]),
    ):
        check_facts_and_words(experiment, damaged)
        for lang in ("zh", "en"):
            draw(experiment, damaged, lang)


def check_plot(experiment: ModuleType, record: Record, lang: str) -> None:
    """torch, made to take twice the time, stands at half of ours on every axis."""
    figure = draw(experiment, timed_by_bytes(record, {"torch": 2.0}), lang)
    assert len(figure.axes) == 3
    for axis in figure.axes:
        ours, torch = axis.lines[:2]
        assert list(ours.get_ydata()) == pytest.approx([100.0] * len(ours.get_ydata()))
        assert list(torch.get_ydata()) == pytest.approx([50.0] * len(torch.get_ydata()))
