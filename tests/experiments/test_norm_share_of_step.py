"""The norms' share of a step: the same model but for its norms."""

import pytest
import torch

from scripts.experiments import norm_share_of_step
from scripts.measure.records import Record, rows_problem
from tests.benchmark import gpu_record
from tests.tiny import check_facts_and_words, draw, select, tiny_rows

TINY = norm_share_of_step.SIZES["tiny"]


@pytest.fixture(scope="module")
def rows():
    return tiny_rows(norm_share_of_step)


@pytest.fixture(scope="module")
def record(rows):
    return gpu_record(norm_share_of_step, rows)


def test_rows(rows):
    assert rows_problem(list(rows[0]), rows) is None
    for step in norm_share_of_step.STEPS:
        found = select(rows, step=step, mode="eager")
        assert [row["norm"] for row in found] == list(norm_share_of_step.NORMS)
        assert all(len(row["seconds"]) == 2 for row in found)


def test_models_differ_in_their_norms_alone():
    tokens = torch.arange(16).view(2, 8)
    results = {}
    for kind in norm_share_of_step.NORMS:
        decoder = norm_share_of_step.model(kind, TINY)
        norms = [m for m in decoder.modules() if type(m).__name__ == "Norm"]
        assert len(norms) == 2 * TINY["blocks"] + 1
        assert all(isinstance(m.gain, torch.nn.Parameter) for m in norms)
        results[kind] = decoder(tokens).detach()
    for family in ("rms", "layer"):
        first, *others = (
            results[f"{family}_{how}"] for how in ("unfused", "torch", "ours")
        )
        for other in others:
            assert torch.allclose(first, other, rtol=1e-4, atol=1e-5)
    assert torch.equal(results["none"], results["none_again"])
    assert not torch.allclose(results["none"], results["rms_ours"], rtol=1e-2)
    assert not torch.allclose(results["layer_ours"], results["rms_ours"], rtol=1e-2)


def test_a_training_step_reaches_every_parameter():
    for kind in ("none", "rms_ours", "layer_ours"):
        training, decoding = norm_share_of_step.calls(kind, "eager", TINY)
        training()
        assert decoding().shape == (TINY["sequences"], 1, TINY["vocabulary"])


def test_facts_and_words(record):
    check_facts_and_words(norm_share_of_step, record)


@pytest.fixture
def made(record):
    """Unfused norms double the time of the bare model, ours add a quarter."""
    factor = {"rms_unfused": 2.0, "rms_ours": 1.25, "none_again": 1.01}
    rows = [
        {**row, "seconds": [1e-3 * factor.get(row["norm"], 1.0)] * 5}
        for row in record.rows
    ]
    where = record.provenance
    return Record(record.experiment, "m", "tiny", where, record.columns, rows)


def test_facts_say_what_the_rows_say(made):
    facts = norm_share_of_step.facts(made)
    assert facts["training_eager_bare"] == "1000 µs"
    assert facts["training_eager_rms_unfused"] == "50.0 %"
    assert facts["decoding_eager_rms_ours"] == "20.0 %"
    assert facts["decoding_eager_layer_torch"] == "0.0 %"
    assert facts["floor"] == "1.0 %"


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(made, lang):
    training, decoding = draw(norm_share_of_step, made, lang).axes
    assert training.patches[0].get_width() == pytest.approx(50.0)
    assert decoding.patches[2].get_width() == pytest.approx(20.0)
