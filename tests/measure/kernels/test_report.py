"""What is made of rows of kernels: rates, shares of the copy, facts."""

from dataclasses import replace

import pytest

from scripts.measure.kernels import report, rows
from scripts.measure.kernels.cells import Cell
from scripts.measure.records import Record


def row(operation, provider, seconds, **changes):
    """As a run writes it."""
    made = rows.row(Cell(operation, 100, 16), provider)
    found = {"bytes": 10**9, "device_seconds": seconds, "method": "graph"}
    return {**made, **found, **changes}


@pytest.fixture
def record():
    made = [
        row("copy", "stream", [1.05e-3] * 9),
        row("copy", "torch", [1e-3] * 9),
        row("rms_norm", "ours", [1e-3] * 9),
        row("rms_norm", "ours_again", [1.01e-3] * 9),
        row("rms_norm", "liger", [2e-3] * 9),
        row("rms_norm", "torch", [1.005e-3] * 9),
        row("add_rms_norm", "ours", [2.5e-3] * 9),
        row("add_rms_norm", "stream", [2e-3] * 9),
        row("add_rms_norm", "torch", [2e-3] * 9),
        row("add_rms_norm", "liger", None, status="skipped", why="not here"),
    ]
    where = {"device": {"name": "A GPU", "kind": "gpu"}}
    return Record("x", "m", "full", where, list(made[0]), made)


def test_shares_are_of_the_best_large_copy(record):
    (ours,) = report.timed(record, operation="rms_norm", provider="ours")
    assert report.share_of_copy(record, ours) == pytest.approx(1.0)
    (ours,) = report.timed(record, operation="add_rms_norm", provider="ours")
    assert report.share_of_copy(record, ours) == pytest.approx(0.4)
    assert report.share_of_mix(record, ours) == pytest.approx(0.8)  # its own bytes
    assert report.rate(row("rms_norm", "ours", [1e-3, 2e-3, 9e-3])) == 1e9 / 2e-3


def test_common_facts(record):
    assert report.common_facts(record) == {
        "machine": "A GPU",
        "copy": "1.00 TB/s",
        "floor": "1.0%",
        "mix_least": "80%",
        "mix_most": "80%",
    }


def test_a_record_without_copies_has_no_shares(record):
    rows = [row for row in record.rows if row["operation"] != "copy"]
    bare = replace(record, rows=[r for r in rows if r["provider"] != "stream"])
    facts = report.common_facts(bare)
    assert facts["copy"] == facts["mix_most"] == "—"
    assert report.line(bare, "rms_norm", "ours") == {}
    found = report.share_facts(bare, ["rms_norm"], ["ours"])
    assert found["rms_norm_16_ours"] == found["rms_norm_least"] == "—"


def test_a_line_is_of_the_most_rows_in_one_dtype(record):
    more = row("rms_norm", "liger", [4e-3] * 9, rows=200)
    other = row("rms_norm", "liger", [1e-3] * 9, rows=400, dtype="float32")
    found = replace(record, rows=[*record.rows, more, other])
    assert report.line(found, "rms_norm", "liger") == {16: pytest.approx(0.25)}
    assert report.share_facts(found, ["rms_norm"], ["liger", "ours"]) == {
        "rms_norm_16_liger": "25%",
        "rms_norm_16_liger_time": "4000 µs",
        "rms_norm_16_ours": "100%",
        "rms_norm_16_ours_time": "1000 µs",
        "rms_norm_least": "100%",
        "rms_norm_most": "100%",
    }
