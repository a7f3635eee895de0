"""The benchmark's cells, facts and figure, at a size that a CPU can interpret."""

import pytest

from scripts.experiments import qk_norm_bandwidth
from tests.experiment_checks import timed_by_bytes
from tests.kernel_benchmark_checks import check_gaps, check_plot, check_rows
from tests.kernel_checks import INTERPRETED

pytestmark = INTERPRETED


def test_rows(rows):
    check_rows(qk_norm_bandwidth, rows)


def test_a_record_with_gaps(record):
    check_gaps(qk_norm_bandwidth, record)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    check_plot(qk_norm_bandwidth, record, lang)


def test_facts_say_what_the_rows_say(record):
    facts = qk_norm_bandwidth.facts(timed_by_bytes(record, {"torch": 4.0}))
    assert facts["rms_norm_packed_16_ours"] == "100%"
    assert facts["qk_norm_rope_contiguous_16_torch"] == "25%"
    assert facts["rms_norm_backward_most"] == "100%"
