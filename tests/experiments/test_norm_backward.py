"""The benchmark's cells, facts and figure, at a size that a CPU can interpret."""

import pytest

from scripts.experiments import norm_backward
from tests.experiment_checks import timed_by_bytes
from tests.kernel_benchmark_checks import check_gaps, check_plot, check_rows
from tests.kernel_checks import INTERPRETED

pytestmark = INTERPRETED


def test_rows(rows):
    check_rows(norm_backward, rows)


def test_a_record_with_gaps(record):
    check_gaps(norm_backward, record)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    check_plot(norm_backward, record, lang)


def test_facts_say_what_the_rows_say(record):
    facts = norm_backward.facts(timed_by_bytes(record, {"torch": 4.0, "ours": 0.5}))
    assert facts["rms_norm_backward_16_ours"] == "200%"
    assert facts["layer_norm_backward_24_torch"] == "25%"
    assert facts["rms_norm_backward_over_torch_least"] == "8.0"
