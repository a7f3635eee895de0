"""The experiment measures what its page says, and says it in both languages."""

from math import inf

import pytest
import torch
from torch.nn import functional as F

from scripts.experiments import centring_ablation
from scripts.measure.corpus import loss_of
from scripts.measure.together import alone, warm_up
from snippets.layer_norm.reference import layer_norm
from snippets.rms_norm.reference import rms_norm
from tests.experiment_checks import check_facts, plain_step, select, with_values

SIZE = centring_ablation.SIZES["tiny"]
LINES = [4, 4, 4, 6]
CELLS = [(s, a) for s, arms in centring_ablation.SETTINGS.items() for a in arms]


def fresh(arm, setting="deep", seed=0):
    return centring_ablation.fresh(arm, setting, SIZE, seed)


def text(seed=0):
    return centring_ablation.pieces(SIZE, seed, 1)[0]


def test_rows(rows):
    for setting, arm in CELLS:
        norms = 2 * centring_ablation.layers(setting, SIZE) + 1
        lengths = {"loss": 1, "share": norms, "rms": norms, "hidden": norms // 2}
        for seed in centring_ablation.SEEDS:
            run = select(rows, setting=setting, arm=arm, seed=seed)
            assert len(run) == 4 * (1 + len(SIZE["rates"]))
            assert all(len(r["values"]) == lengths[r["quantity"]] for r in run)
            befores = select(run, stage="before")
            assert {r["rate"] for r in befores} == {None}
            assert {r["rate"] for r in select(run, stage="after")} == {*SIZE["rates"]}
    shares = select(rows, quantity="share") + select(rows, quantity="hidden")
    assert all(0 < value < 1 for r in shares for value in r["values"])
    cells = [repr(step.cell) for step in centring_ablation.measure("tiny")]
    assert len(set(cells)) == len(cells) == len(CELLS)


def test_the_arms_are_what_they_say():
    x = 2 + 3 * torch.randn(4, SIZE["d"])
    expected = {
        "layer_norm": layer_norm(x),
        "rms_norm": rms_norm(x, eps=1e-5),
        "centring": x - x.mean(-1, keepdim=True),
        "neither": x,
    }
    for arm, wanted in expected.items():
        for norm in [branch.norm for branch in fresh(arm).branches] + [fresh(arm).norm]:
            assert torch.allclose(norm(x), wanted, atol=1e-6)
            with torch.no_grad():
                norm.gain[:] = torch.arange(SIZE["d"])
            assert torch.allclose(norm(x), wanted * torch.arange(SIZE["d"]), atol=1e-5)


def test_the_arms_start_from_the_same_weights():
    for setting in ("shallow", "deep", "scaled"):
        first = fresh("layer_norm", setting).state_dict()
        for arm in centring_ablation.ARMS:
            other = fresh(arm, setting).state_dict()
            assert first.keys() == other.keys()
            assert all(torch.equal(first[name], other[name]) for name in first)
    deep, scaled = fresh("neither"), fresh("neither", "scaled")
    for a, b in zip(deep.branches, scaled.branches, strict=True):
        assert torch.allclose(a.body.writer.weight / 2, b.body.writer.weight)  # 4 of it
        assert torch.equal(a.body.reader.weight, b.body.reader.weight)
    assert len(fresh("neither", "shallow").branches) == 2


def test_the_offset_reaches_only_the_arms_that_do_not_centre():
    """In function and in every gradient, up to the rounding of the shifted weights."""
    for arm in centring_ablation.ARMS:
        losses, gradients = [], []
        for setting in ("shallow", "offset"):
            model = fresh(arm, setting).double()
            loss = loss_of(model, text())
            found = torch.autograd.grad(loss, list(model.parameters()))
            losses.append(loss.item())
            gradients.append(torch.cat([each.flatten() for each in found]))
        same = torch.allclose(*gradients, atol=1e-5)
        assert same == (abs(losses[0] - losses[1]) < 1e-5)
        assert same == centring_ablation.ARMS[arm][0]
    model = fresh("rms_norm", "offset")
    share = centring_ablation.evaluate(model, text())["share"]
    assert 0.8 < share[0] < 0.97


def test_evaluate_takes_the_share_of_each_token():
    model, batch = fresh("rms_norm"), text()
    found = centring_ablation.evaluate(model, batch)
    x = model.token(batch[:, :-1]) + model.position.weight
    shares, sizes, hidden = [], [], []
    for branch in [*model.branches, None]:
        ones = torch.ones_like(x)
        shares.append(torch.cosine_similarity(x, ones, dim=-1).square().mean().item())
        sizes.append((x.norm(dim=-1) / x.shape[-1] ** 0.5).mean().item())
        if branch is not None:
            if hasattr(branch.body, "activation"):
                y = F.gelu(branch.body.reader(branch.norm(x)))
                ones = torch.ones_like(y)
                cosine = torch.cosine_similarity(y, ones, dim=-1)
                hidden.append(cosine.square().mean().item())
            x = branch(x)
    assert found["share"] == pytest.approx(shares, rel=1e-4)
    assert found["rms"] == pytest.approx(sizes, rel=1e-4)
    assert found["hidden"] == pytest.approx(hidden, rel=1e-4)
    assert found["loss"] == pytest.approx([loss_of(model, batch).item()])
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    with torch.no_grad():
        model.head.weight.fill_(inf)
    assert centring_ablation.evaluate(model, batch)["loss"] == [None]


def test_a_run_of_the_stack_is_a_plain_training(monkeypatch):
    """Against torch's AdamW and clipping, for one run that is not the first.

    In float64: Adam makes steps of the rounding in gradients that are zero, as
    those of the keys' biases are.
    """
    single = centring_ablation.fresh

    def fresh(*arguments):
        return single(*arguments).double()

    monkeypatch.setattr(centring_ablation, "fresh", lambda *each: fresh(*each))
    runs, models = centring_ablation.train("centring", "scaled", SIZE)
    seed, rate = runs[3]
    assert (seed, rate) == (1, SIZE["rates"][1])
    model = fresh("centring", "scaled", SIZE, seed)
    matrices = [p for name, p in model.named_parameters() if name.endswith("weight")]
    others = [p for name, p in model.named_parameters() if not name.endswith("weight")]
    assert len(others) > len(model.branches)
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": others}],
        lr=rate,
        weight_decay=0.0,
    )
    factor = warm_up(SIZE["steps"], 1)
    data = centring_ablation.pieces(SIZE, seed, SIZE["steps"])
    for step in range(SIZE["steps"]):
        plain_step(optimizer, loss_of(model, data[step]), rate * factor(step), clip=1.0)
    ours, start = alone(models, 3).state_dict(), fresh("centring", "scaled", SIZE, seed)
    for name, wanted in model.state_dict().items():
        assert torch.allclose(ours[name], wanted, atol=1e-9), name
    assert not torch.equal(ours["head.weight"], start.head.weight)


def test_held_out_text_is_not_trained_on():
    assert centring_ablation.held_out(SIZE).shape == (4, SIZE["context"] + 1)
    one, other = (centring_ablation.pieces(SIZE, seed, 3) for seed in (0, 1))
    assert one.shape == (3, SIZE["batch"], SIZE["context"] + 1)
    assert not torch.equal(one, other)


def test_facts_say_what_the_rows_say(record):
    """Rows made up so that every number can be told by eye."""
    least, most = SIZE["rates"]
    base = {"layer_norm": 2.0, "rms_norm": 2.1, "centring": 2.4, "neither": 2.5}

    def values(row):
        if row["quantity"] == "rms":
            return [1.0] * (len(row["values"]) - 1) + [7.0]
        if row["quantity"] != "loss":
            return [0.5] + [0.1] * (len(row["values"]) - 1)
        if row["stage"] == "before":
            return [6.0]
        if row["arm"] == "neither" and row["rate"] == most and row["seed"] < 3:
            return [None]
        worse = (
            0.0 if row["rate"] == (least if row["arm"] == "neither" else most) else 5.0
        )
        lead = 0.2 if row["arm"] == "rms_norm" and row["seed"] == 4 else 0.0
        return [base[row["arm"]] + worse - lead]

    expected = {
        "rates": "2",
        "least_rate": "0.001",
        "most_rate": "0.01",
        "deep_rms_norm": "2.100",
        "deep_rms_norm_range": "[1.900, 2.100]",
        "deep_rms_norm_rate": "0.01",
        "deep_neither_rate": "0.001",
        "deep_neither_diverged": "5",
        "deep_layer_norm_diverged": "5",
        "deep_no_centring": "0.100",
        "deep_no_centring_range": "[−0.100, 0.100]",
        "scaled_no_scaling": "0.400",
        "offset_cost_neither": "0.000",
        "shallow_rms_norm_share_after_highest": "50%",
        "shallow_rms_norm_rms_after": "7.0",
        "cells": "16",
        "at_edge": "16",
        "compared_runs": "60",
        "diverged_with_scaling": "30",
        "diverged_without_scaling": "30",
        "least_share_before": "18%",
        "most_share_before": "23%",
        "long_steps": "9",
        "long_no_scaling": "0.400",
    }
    check_facts(centring_ablation, with_values(record, values), expected)
