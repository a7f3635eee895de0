"""The norms' share of a step: the same model but for its norms."""

from dataclasses import replace

import pytest
import torch

from scripts.experiments import norm_share_of_step
from scripts.measure.records import rows_problem
from tests.experiment_checks import draw, select
from tests.kernel_benchmark_checks import gpu_record

TINY = norm_share_of_step.SIZES["tiny"]


def test_rows(rows):
    assert {(row["status"], row["why"]) for row in rows} == {("ok", None)}
    for step in norm_share_of_step.STEPS:
        for made in norm_share_of_step.MADE:
            found = select(rows, step=step, mode="eager", made=made)
            kinds = ["none", "none_again", f"rms_{made}", f"layer_{made}"]
            assert [row["norm"] for row in found] == kinds
            assert all(len(row["seconds"]) == 2 for row in found)


def test_models_differ_in_their_norms_alone():
    tokens = torch.arange(16).view(2, 8)
    results = {}
    for kind in norm_share_of_step.BARE + norm_share_of_step.NORMS:
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


@pytest.mark.parametrize("kind", ["none", "rms_ours", "layer_ours"])
def test_a_training_step_reaches_every_parameter(monkeypatch, kind):
    decoder, reached = norm_share_of_step.model(kind, TINY), []
    monkeypatch.setattr(norm_share_of_step, "model", lambda *_: decoder)
    for parameter in decoder.parameters():
        parameter.register_post_accumulate_grad_hook(reached.append)
    norm_share_of_step.call(kind, "training", "eager", TINY)()
    gains = 2 * TINY["blocks"] + 1 if kind == "none" else 0  # nothing uses them
    assert len(reached) == len(list(decoder.parameters())) - gains
    assert all(parameter.grad is None for parameter in decoder.parameters())
    decoding = norm_share_of_step.call(kind, "decoding", "eager", TINY)
    assert decoding().shape == (TINY["sequences"], 1, TINY["vocabulary"])


def test_every_kind_is_one_graph_of_fixed_shapes(monkeypatch):
    asked, compiled = [], torch.compile

    def compile_fast(function, **options):
        asked.append(options)
        return compiled(function, backend="aot_eager", **options)

    monkeypatch.setattr(torch, "compile", compile_fast)
    for which, made in (("training", "ours"), ("decoding", "unfused")):
        rows = norm_share_of_step.step_times(which, "compiled", made, "tiny")
        assert [row["why"] for row in rows] == [None] * 4
    assert asked == [dict(fullgraph=True, dynamic=False)] * 8


def test_a_kind_that_fails_is_a_row_with_the_reason(monkeypatch):
    right = norm_share_of_step.model

    def model(kind, setting):
        if kind == "rms_ours":
            raise RuntimeError("no registers left\nand more")
        return right(kind, setting)

    monkeypatch.setattr(norm_share_of_step, "model", model)
    rows = norm_share_of_step.step_times("decoding", "eager", "ours", "tiny")
    assert rows_problem(list(rows[0]), rows) is None
    (failed,) = select(rows, status="failed")
    assert failed["why"] == "RuntimeError: no registers left"
    facts = norm_share_of_step.facts(gpu_record(norm_share_of_step, rows))
    assert facts["decoding_eager_rms_ours"] == facts["training_eager_bare"] == "—"
    assert facts["decoding_eager_layer_ours"].endswith("%")
    assert facts["failed"] == "1"


@pytest.fixture
def made(record):
    """Unfused norms double the time of the bare model, ours add a quarter."""
    factor = {"rms_unfused": 2.0, "rms_ours": 1.25, "none_again": 1.01}
    speed = {"unfused": 1e-3, "torch": 2e-3, "ours": 3e-3}  # a step, another clock
    rows = [
        {**row, "seconds": [speed[row["made"]] * factor.get(row["norm"], 1.0)] * 5}
        for row in record.rows
    ]
    return replace(record, rows=rows)


def test_facts_say_what_the_rows_say(made):
    facts = norm_share_of_step.facts(made)
    assert facts["training_eager_bare"] == "2.00 ms"
    assert facts["training_eager_rms_unfused"] == "50.0%"
    assert facts["decoding_eager_rms_ours"] == "20.0%"
    assert facts["decoding_eager_layer_torch"] == "0.0%"
    assert facts["floor"] == "1.0%"
    assert facts["training_compiled_rms_ours"] == "—"


def test_no_share_across_steps_or_methods(made):
    """A norm is divided by the bare model of its own step, timed as it was."""
    rows = [
        {**row, "method": "event_flush"} if row["norm"] == "layer_ours" else row
        for row in made.rows
        if (row["made"], row["norm"]) != ("torch", "none")
    ]
    facts = norm_share_of_step.facts(gpu_record(norm_share_of_step, rows))
    assert facts["training_eager_rms_ours"] == "20.0%"
    assert facts["training_eager_layer_ours"] == "—"
    assert facts["training_eager_rms_torch"] == "—"


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(made, lang):
    training, decoding = draw(norm_share_of_step, made, lang).axes
    assert training.patches[0].get_width() == pytest.approx(50.0)
    assert decoding.patches[2].get_width() == pytest.approx(20.0)
