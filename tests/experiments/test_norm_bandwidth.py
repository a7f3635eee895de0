"""The benchmark's cells, facts and figure, at a size that a CPU can interpret."""

import pytest

from scripts.experiments import norm_bandwidth
from tests.experiment_checks import timed_by_bytes
from tests.kernel_benchmark_checks import check_gaps, check_plot, check_rows
from tests.kernel_checks import INTERPRETED

pytestmark = INTERPRETED


def test_rows(rows):
    check_rows(norm_bandwidth, rows)


def test_a_record_with_gaps(record):
    check_gaps(norm_bandwidth, record)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    check_plot(norm_bandwidth, record, lang)


def test_facts_say_what_the_rows_say(record):
    facts = norm_bandwidth.facts(
        timed_by_bytes(record, {"torch": 4.0, "ours_again": 1.02})
    )
    assert facts["rms_norm_16_ours"] == "100%"
    assert facts["layer_norm_24_torch"] == "25%"
    assert facts["rms_norm_least"] == facts["add_rms_norm_most"] == "100%"
    assert facts["floor"] == "2.0%"
    # LayerNorm moves a bias and a mean more: more time, at the same rate.
    assert float(facts["layer_over_rms_most"]) > 1
    assert facts["layer_rms_cells"] == "2"
    assert facts["rms_ahead"] == "2"
