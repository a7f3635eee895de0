"""What is made of rows of kernels: rates, shares of the copy, who is ahead."""

import itertools
from dataclasses import replace

import pytest

from scripts.measure.kernels import report, rows
from scripts.measure.kernels.cells import Cell
from scripts.measure.records import Record

CLOCK = itertools.count()


def row(operation, provider, seconds, **changes):
    """As a run writes it, a millisecond after the one before."""
    made = rows.row(Cell(operation, 100, 16, "bfloat16", "bfloat16"), provider)
    found = {"bytes": 10**9, "device_seconds": seconds, "method": "graph"}
    return {**made, **found, "at": next(CLOCK), **changes}


@pytest.fixture
def record():
    made = [
        row("stream", "1R1W", [1.05e-3] * 9, why="large"),
        row("stream", "1R1W", [1.155e-3] * 9, why="large"),
        row("stream", "1R1W", [9e-3] * 9, why="sweep", bytes=2 * 10**9),
        row("stream", "1R1W_copy", [1e-3] * 9, why="large"),
        row("stream", "1R1W", [1e-9] * 9, bytes=1000),  # small: cached
        row("stream", "2R2W", [1.25e-3] * 9, why="large"),
        row("stream", "2R2W", [2e-3] * 9, beside="add_rms_norm"),
        row("stream", "2R2W", None, status="failed"),
        row("rms_norm", "ours", [1e-3] * 9),
        row("rms_norm", "ours_again", [1.01e-3] * 9),
        row("rms_norm", "liger", [2e-3] * 9),
        row("rms_norm", "torch", [1.005e-3] * 9),
        row("add_rms_norm", "ours", [2.5e-3] * 9),
        row("add_rms_norm", "torch", [2e-3] * 9),
        row("add_rms_norm", "quack", None, status="skipped", why="not here"),
        row("add_rms_norm", "compile", [1e-3] * 9, method="event_flush"),
    ]
    where = {"device": {"name": "A GPU", "kind": "gpu"}}
    return Record("x", "m", "full", where, list(made[0]), made)


def test_shares_are_of_the_best_large_copy(record):
    (ours,) = report.timed(record, operation="rms_norm", provider="ours")
    assert report.share_of_copy(record, ours) == pytest.approx(1.0)
    (ours,) = report.timed(record, operation="add_rms_norm", provider="ours")
    assert report.share_of_copy(record, ours) == pytest.approx(0.4)
    assert report.share_of_mix(record, ours) == pytest.approx(0.8)  # its own bytes
    assert report.drift(record) == pytest.approx(0.1)


def test_peers_ahead_are_beyond_the_floor(record):
    assert report.floor(record) == pytest.approx(0.01)
    ((where, peer, factor),) = report.faster_peers(record)
    assert (where[0], peer, factor) == ("add_rms_norm", "torch", 1.25)


def test_common_facts(record):
    facts = report.common_facts(record)
    assert facts["rate_1r1w"] == "1.00 TB/s"
    assert facts["floor"] == "1.0 %"
    assert facts["drift"] == "10.0 %"
    assert facts["peers_ahead"] == "1"
    assert facts["skipped"] == "1"
    assert facts["rate_1r1w_copy"] == "1.00 TB/s"
    assert facts["by_events"] == "1"
    assert facts["mix_least"] == facts["mix_most"] == "80 %"
    line = report.line(record, "rms_norm", "liger")
    assert line == {16: pytest.approx(0.5)}


def copied(seconds):
    return row("stream", "1R1W", [seconds] * 9, why="large")


def test_cells_between_copies_that_disagree_are_kept_and_not_compared(record):
    made = [
        copied(1e-3),
        row("rms_norm", "ours", [1e-3] * 9),
        copied(1.019e-3),
        row("layer_norm", "ours", [1e-3] * 9),
        row("layer_norm", "torch", [1e-3] * 9),
        row("stream", "1R1W", [2e-3] * 9, why="own size"),  # no sample
        copied(0.99e-3),
        row("add_rms_norm", "ours", [1e-3] * 9),
    ]
    made[1], made[-1] = made[-1], made[1]  # as they stand in a record: of no matter
    found = replace(record, rows=made)
    assert {r["operation"] for r in report.timed(found)} == {"rms_norm", "add_rms_norm"}
    assert {cell[0] for cell in report.unsteady(found)} == {"layer_norm"}
    assert {cell[0] for cell in report.cells(found)} == {"rms_norm", "add_rms_norm"}
    assert report.line(found, "layer_norm", "ours") == {}
    facts = report.common_facts(found)
    assert (facts["unsteady"], facts["drift"]) == ("1", "2.9 %")
    calm = [{**r, "device_seconds": [1e-3] * 9} for r in made]
    assert report.common_facts(replace(record, rows=calm))["unsteady"] == "0"


def test_a_record_without_copies_has_no_shares(record):
    rows = [row for row in record.rows if row["operation"] != "stream"]
    bare = replace(record, rows=rows)
    facts = report.common_facts(bare)
    assert facts["rate_1r1w"] == facts["drift"] == facts["mix_most"] == "—"
    assert report.line(bare, "rms_norm", "ours") == {}
    found = report.share_facts(bare, ["rms_norm"], ["ours"])
    assert found == {"rms_norm_least": "—", "rms_norm_most": "—"}


def test_a_rate_is_that_of_the_median_sample():
    assert report.rate(row("rms_norm", "ours", [1e-3, 2e-3, 9e-3])) == 1e9 / 2e-3


def test_a_peer_just_beyond_the_floor_is_ahead(record):
    near = row("rms_norm", "compile", [1e-3 / 1.015] * 9)
    within = row("rms_norm", "quack", [1e-3 / 1.009] * 9)
    found = replace(record, rows=[*record.rows, near, within])
    ahead = {(cell[0], peer) for cell, peer, _ in report.faster_peers(found)}
    assert ahead == {("add_rms_norm", "torch"), ("rms_norm", "compile")}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        ([], "—"),
        ([1e-6, 3e-6, 2e-6], "2.0 µs"),
        ([99.94e-6], "99.9 µs"),
        ([1e-4], "100 µs"),
    ],
)
def test_microseconds(seconds, text):
    assert report.microseconds(seconds) == text


def test_edges_count_what_passes_and_what_there_is(record):
    edges = [
        row("rms_norm", "ours", None, case="huge"),
        row("rms_norm", "ours", None, case="zeros", status="wrong"),
        row("rms_norm", "torch", None, case="huge"),
        row("rms_norm", "torch", None, case="zeros", status="failed"),
        row("rms_norm", "torch", None, case="ones", status="skipped"),
    ]
    facts = report.common_facts(replace(record, rows=[*record.rows, *edges]))
    assert (facts["edges"], facts["edges_passed"]) == ("2", "1")
    assert facts["edges_passed_torch"] == "1"
    assert facts["wrong"] == "0" and facts["failed"] == "1"  # cells alone


def test_a_line_is_of_the_most_rows_with_a_gain_of_the_same_dtype(record):
    more = row("rms_norm", "liger", [4e-3] * 9, rows=200)
    wider = row("rms_norm", "liger", [1e-3] * 9, rows=400, gain_dtype="float32")
    other = row("rms_norm", "liger", [1e-3] * 9, rows=400, dtype="float32")
    found = replace(record, rows=[*record.rows, more, wider, other])
    assert report.line(found, "rms_norm", "liger") == {16: pytest.approx(0.25)}
    assert report.share_facts(found, ["rms_norm"], ["liger", "ours"]) == {
        "rms_norm_16_liger": "25 %",
        "rms_norm_16_ours": "100 %",
        "rms_norm_least": "100 %",
        "rms_norm_most": "100 %",
    }
