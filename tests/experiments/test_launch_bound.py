"""Few rows, at a size that a CPU can interpret."""

from dataclasses import replace

import pytest

from scripts.experiments import launch_bound
from tests.experiment_checks import draw, select
from tests.kernel_benchmark_checks import check_gaps


def test_rows(rows):
    assert not select(rows, status="wrong")
    (launch,) = select(rows, operation="empty")
    assert len(launch["device_seconds"]) == len(launch["call_seconds"]) == 2
    for operation in launch_bound.OPERATIONS + launch_bound.BOTH:
        ours = select(rows, operation=operation, provider="ours")
        both = operation in launch_bound.BOTH
        assert [row["rows"] for row in ours] == ([12] if both else [1, 8])
        assert all(len(row["call_seconds"]) == 2 for row in ours)
        assert all(row["same_bits"] for row in ours)


def test_a_record_with_gaps(record):
    check_gaps(launch_bound, record)


@pytest.fixture
def made(record):
    """Times that can be told by eye: 2 µs an empty kernel, 1 µs a row for ours."""
    rows = []
    for row in record.rows:
        seconds = {"ours": 1e-6, "ours_again": 1e-6, "torch": 4e-6}
        each = seconds.get(row["provider"], 0) * row["rows"]
        if row["operation"] == "empty":
            each = 2e-6
        if row["operation"] == "copy" or row["provider"] == "stream":
            each = row["bytes"] / 1e8
        called = row["call_seconds"] and [10 * each] * 5
        timed = row["device_seconds"] and [each] * 5
        rows.append({**row, "device_seconds": timed, "call_seconds": called})
    return replace(record, rows=rows)


def test_facts_say_what_the_rows_say(made):
    facts = launch_bound.facts(made)
    assert facts["empty_device"] == "2.0 µs"
    assert facts["empty_call"] == "20.0 µs"
    assert facts["rms_norm_8_ours_device"] == "8.0 µs"
    assert facts["rms_norm_8_torch_call"] == "320 µs"
    assert facts["rms_norm_few_rows"] == "8.0 µs"
    # 12 rows of 16: a call is ten times the device's time.
    assert facts["add_rms_norm_forward_backward_16_ours_call"] == "120 µs"
    assert facts["rms_norm_forward_backward_16_torch_device"] == "48.0 µs"
    assert facts["layer_norm_forward_backward_torch_over_ours_most"] == "4.0"
    # 64 bytes a row at 100 MB/s: 200 bytes fit into an empty kernel.
    assert facts["crossover_rows"] == "3"


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(made, lang):
    device, call = draw(launch_bound, made, lang).axes
    assert list(device.lines[0].get_ydata()) == pytest.approx([1.0, 8.0])
    assert list(call.lines[1].get_ydata()) == pytest.approx([40.0, 320.0])
