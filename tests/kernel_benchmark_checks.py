"""What every benchmark of kernels must hold, at a size that a CPU can interpret."""

from dataclasses import replace
from types import ModuleType

import pytest

from scripts.measure.records import Record
from tests.experiment_checks import (
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
    assert not select(rows, status="wrong")
    assert not select(rows, status="failed")
    for operation in experiment.OPERATIONS:
        ours = select(rows, operation=operation, provider="ours")
        assert len(ours) == 2
        assert all(row["status"] == "ok" and row["same_bits"] for row in ours)
        assert len(select(rows, operation=operation, provider="stream")) == len(ours)
    assert select(rows, operation="copy", provider="stream", status="ok")


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
        changed(lambda r: r["operation"] == "copy", status="failed", **timed),
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
