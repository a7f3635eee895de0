"""The benchmark of kernels on a CPU: gate, bytes, rotation, rows of what is missing."""

from dataclasses import replace

import pytest
import torch

from scripts.measure.kernels import cells, gate, providers, report, rows, timing
from scripts.measure.kernels.cells import OPERATIONS, Cell
from scripts.measure.records import Record, rows_problem


def cell(operation: str, **changes) -> Cell:
    heads = 3 if operation == "qk_norm_rope" else 1
    layout = "packed" if heads > 1 else "contiguous"
    made = Cell(operation, 12, 16, "float32", "float32", heads, layout)
    return replace(made, **changes)


# Bytes --------------------------------------------------------------------


def size(tensors) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_bytes_are_those_of_the_tensors(operation, dtype):
    """Inputs read once, outputs written once, statistics in float32."""
    made = cell(operation, dtype=dtype, gain_dtype=dtype)
    inputs = OPERATIONS[operation].inputs(made, 0, "cpu")
    if operation == "soft_cap":
        inputs.pop("gain")
    if operation.endswith("backward"):
        inputs.pop("bias", None)  # its gradient does not need it
        if operation.startswith("add_"):
            inputs.pop("branch")  # the sum was kept instead
    answer = OPERATIONS[operation].answer(OPERATIONS[operation].inputs(made, 0, "cpu"))
    written = [a.to(getattr(torch, dtype)) for a in answer]
    statistics = {"soft_cap": 0, "layer_norm": 2, "layer_norm_backward": 2}
    extra = 4 * made.rows * statistics.get(operation, 1)
    moved = OPERATIONS[operation].moved(made)
    assert moved == size(inputs.values()) + size(written) + extra


def test_packed_queries_lie_in_a_projection():
    x = OPERATIONS["qk_norm_rope"].inputs(cell("qk_norm_rope"), 0, "cpu")["x"]
    assert x.shape == (1, 4, 3, 16)
    assert x.stride() == (4 * 9 * 16, 9 * 16, 16, 1)


# The gate -----------------------------------------------------------------


def test_distance_counts_units_in_the_last_place():
    exact = torch.tensor([1.0, 1.5, -2.0, 1e-50], dtype=torch.float64)
    found = exact.float()
    found[1] += 3 * 2**-23
    found[2] -= 2 * 2**-22
    measured = gate.distance(found, exact)
    assert measured.most_ulp == pytest.approx(3.0, abs=0.1)
    gap = ((found.double() - exact).norm() / exact.norm()).item()
    assert measured.relative == pytest.approx(gap)


def test_distance_of_what_was_never_written_is_infinite():
    found = torch.tensor([1.0, torch.nan])
    assert gate.distance(found, torch.ones(2).double()).relative == float("inf")


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_every_provider_that_is_here_passes(operation):
    found = rows.measured(
        cell(operation), ["ours", "ours_again", "torch", "torch_unfused"], rounds=2
    )
    assert rows_problem(list(found[0]), found) is None
    status = {row["provider"]: row["status"] for row in found}
    assert status["ours"] == status["ours_again"] == "ok"
    assert set(status.values()) <= {"ok", "skipped"}
    for row in found:
        if row["status"] == "ok":
            assert len(row["device_seconds"]) == 2
            assert row["same_bits"] is True
            assert max(row["relative"]) < 1e-6
            assert row["bytes"] == OPERATIONS[operation].moved(cell(operation))
        else:
            assert row["why"]


def test_a_wrong_kernel_has_a_row_and_no_time(monkeypatch):
    """RMSNorm with epsilon outside the root, on small inputs, as a provider."""

    def wrong(_, inputs):
        x = 1e-3 * inputs["x"]
        inputs["x"] = x
        scale = 1 / (x.square().mean(-1, keepdim=True).sqrt() + cells.EPS)
        return lambda: (x * scale * inputs["gain"],)

    monkeypatch.setitem(providers.PROVIDERS, "wrong", wrong)
    (found,) = rows.measured(cell("rms_norm"), ["wrong"], rounds=2)
    assert found["status"] == "ok" or found["relative"][0] > 1e-4
    monkeypatch.setitem(
        providers.PROVIDERS, "wrong", lambda _, i: lambda: (1.03 * i["x"],)
    )
    (found,) = rows.measured(cell("rms_norm"), ["wrong"], rounds=2)
    assert found["status"] == "wrong"
    assert found["device_seconds"] is None
    assert found["relative"][0] > 2e-2


def test_missing_and_failing_peers_are_rows(monkeypatch):
    def broken(cell, inputs):
        raise IndexError("the peer's own\nmany lines")

    monkeypatch.setitem(providers.PROVIDERS, "liger", broken)
    found = rows.measured(cell("rms_norm"), ["ours", "liger", "quack"], rounds=2)
    status = {row["provider"]: (row["status"], row["why"]) for row in found}
    assert status["liger"] == ("failed", "IndexError: the peer's own")
    assert status["quack"][0] == "skipped"
    assert "quack is not here" in status["quack"][1]


def test_our_own_failure_is_loud(monkeypatch):
    def broken(cell, inputs):
        raise IndexError("ours")

    monkeypatch.setitem(providers.PROVIDERS, "ours", broken)
    with pytest.raises(IndexError, match="ours"):
        rows.measured(cell("rms_norm"), ["ours"], rounds=2)


# Time ---------------------------------------------------------------------


def test_sets_are_four_times_the_cache():
    for moved in (1000, 10**6, 64 * 2**20, 10**10):
        sets = timing.sets_needed(moved)
        assert sets >= 2
        assert sets * moved >= 4 * timing.L2
        assert sets == 2 or (sets - 1) * moved < 4 * timing.L2


def test_every_provider_gives_a_sample_a_round_in_rotated_order(monkeypatch):
    order = []

    class Fake:
        method, launches = "fake", 1

        def __init__(self, calls):
            self.name = calls[0]()

        def sample(self):
            order.append(self.name)
            return 1.0

    monkeypatch.setattr(timing, "_timer", Fake)
    named = {name: [lambda name=name: name] for name in "abc"}
    found = timing.device_times(named, rounds=4)
    assert "".join(order) == "abc" + "bca" + "cab" + "abc"
    assert all(len(each.seconds) == 4 for each in found.values())


def test_calls_go_round_over_the_sets():
    seen = []
    calls = [lambda i=i: seen.append(i) for i in range(3)]
    timing.call_times({"a": calls}, rounds=1, calls=7)
    assert seen == [0, 1, 2, *[0, 1, 2, 0, 1, 2, 0]]


# What is made of it -------------------------------------------------------


def row(operation, provider, seconds, **changes):
    made = rows.row(Cell(operation, 100, 16, "bfloat16", "bfloat16"), provider)
    return {**made, "bytes": 10**9, "device_seconds": seconds, **changes}


@pytest.fixture
def record():
    made = [
        row("stream", "1R1W", [1e-3] * 9),
        row("stream", "1R1W", [1.1e-3] * 9),
        row("stream", "1R1W", [1e-9] * 9, bytes=1000),  # small: cached
        row("stream", "2R2W", [1.25e-3] * 9),
        row("rms_norm", "ours", [1e-3] * 9),
        row("rms_norm", "ours_again", [1.01e-3] * 9),
        row("rms_norm", "liger", [2e-3] * 9),
        row("rms_norm", "torch", [1.005e-3] * 9),
        row("add_rms_norm", "ours", [2.5e-3] * 9),
        row("add_rms_norm", "torch", [2e-3] * 9),
        row("add_rms_norm", "quack", None, status="skipped", why="not here"),
    ]
    where = {"device": {"name": "A GPU", "kind": "gpu"}}
    return Record("x", "m", "full", where, list(made[0]), made)


def test_shares_are_of_the_best_large_copy(record):
    (ours,) = report.timed(record, operation="rms_norm", provider="ours")
    assert report.share_of_copy(record, ours) == pytest.approx(1.0)
    (ours,) = report.timed(record, operation="add_rms_norm", provider="ours")
    assert report.share_of_copy(record, ours) == pytest.approx(0.4)
    assert report.share_of_mix(record, ours) == pytest.approx(0.5)
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
    line = report.line(record, "rms_norm", "liger")
    assert line == {16: pytest.approx(0.5)}
