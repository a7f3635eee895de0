"""The benchmark's cells, facts and figure, at a size that a CPU can interpret."""

import pytest

from scripts.experiments import norm_bandwidth
from scripts.measure.kernels.cells import OPERATIONS
from scripts.measure.records import rows_problem
from tests.tiny import (
    check_facts_and_words,
    draw,
    select,
    timed_by_bytes,
    tiny_record,
    tiny_rows,
)

GPU = {"device": {"name": "A GPU", "kind": "gpu"}}


@pytest.fixture(scope="module")
def rows():
    return tiny_rows(norm_bandwidth)


@pytest.fixture(scope="module")
def record(rows):
    return tiny_record("norm_bandwidth", rows, norm_bandwidth.SEEDS, **GPU)


def test_rows(rows):
    assert rows_problem(list(rows[0]), rows) is None
    assert not select(rows, status="wrong")
    assert not select(rows, status="failed")
    for operation in norm_bandwidth.OPERATIONS:
        ours = select(rows, operation=operation, provider="ours")
        assert len(ours) == 2
        assert all(row["status"] == "ok" and row["same_bits"] for row in ours)
        mix = OPERATIONS[operation].mix
        assert len(select(rows, operation="stream", provider=mix)) >= 2 * len(ours)


def test_cells():
    for size in ("tiny", "small", "full"):
        cells = [repr(step.cell) for step in norm_bandwidth.measure(size)]
        assert len(set(cells)) == len(cells)
    assert len(cells) > len(norm_bandwidth.measure("tiny"))


def test_facts_and_words(record):
    check_facts_and_words(norm_bandwidth, record)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    figure = draw(norm_bandwidth, timed_by_bytes(record, {"torch": 2.0}), lang)
    assert len(figure.axes) == 3
    for axis in figure.axes:
        ours, torch = axis.lines[:2]
        assert list(ours.get_ydata()) == pytest.approx([100.0] * len(ours.get_ydata()))
        assert list(torch.get_ydata()) == pytest.approx([50.0] * len(torch.get_ydata()))


def test_facts_say_what_the_rows_say(record):
    facts = norm_bandwidth.facts(
        timed_by_bytes(record, {"torch": 4.0, "ours_again": 1.02})
    )
    assert facts["rms_norm_16_ours"] == "100 %"
    assert facts["layer_norm_24_torch"] == "25 %"
    assert facts["rms_norm_least"] == facts["add_rms_norm_most"] == "100 %"
    assert facts["floor"] == "2.0 %"
    assert facts["drift"] == "0.0 %"
    assert facts["peers_ahead"] == "0"
    # LayerNorm moves a bias and a mean more: more time, at the same rate.
    assert float(facts["layer_over_rms_most"]) > 1
    assert facts["layer_rms_cells"] == "2"
    assert facts["rms_ahead"] == "2"
