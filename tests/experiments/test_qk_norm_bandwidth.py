"""The benchmark's cells, facts and figure, at a size that a CPU can interpret."""

import pytest

from scripts.experiments import qk_norm_bandwidth
from tests.benchmark import (
    check_gaps,
    check_plot,
    check_rows,
    gpu_record,
)
from tests.kernel_gate import INTERPRETED
from tests.tiny import check_facts_and_words, timed_by_bytes, tiny_rows

pytestmark = INTERPRETED


@pytest.fixture(scope="module")
def rows():
    return tiny_rows(qk_norm_bandwidth)


@pytest.fixture(scope="module")
def record(rows):
    return gpu_record(qk_norm_bandwidth, rows)


def test_rows(rows):
    check_rows(qk_norm_bandwidth, rows)


def test_facts_and_words(record):
    check_facts_and_words(qk_norm_bandwidth, record)


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
