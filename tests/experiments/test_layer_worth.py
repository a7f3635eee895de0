"""The experiment measures what its page says, and says it in both languages."""

from dataclasses import replace
from math import log

import pytest
import torch

from scripts.experiments import layer_worth, residual_growth
from scripts.experiments.layer_worth import ARMS, CONTROLS, FROZEN, SEEDS
from scripts.measure.corpus import loss_of
from tests.experiment_checks import check_facts, draw, select, with_values

TINY = layer_worth.SIZES["tiny"]
SCALES = {"rms", "update", "cosine", "without_layer"}
LOSSES = {"loss", "without_upper_half", "without_lower_half"}
LINES = [len(ARMS) + len(CONTROLS) - 1, len(ARMS) + len(CONTROLS)]


def test_rows(rows):
    for arm in (*ARMS, *CONTROLS):
        layers = layer_worth.depth(arm, TINY)
        wanted = {"loss"} if arm == "no_layers" else SCALES | LOSSES
        rates = layer_worth.rates_of(arm)
        for rate in (*rates, *([None] if arm in ARMS else [])):
            found = select(rows, arm=arm, rate=rate)
            assert {row["quantity"] for row in found} == wanted
            for quantity in wanted:
                runs = select(found, quantity=quantity)
                assert [run["seed"] for run in runs] == list(SEEDS)
                count = 1 if quantity in LOSSES else layers
                assert {len(run["values"]) for run in runs} == {count}
    (known,) = select(rows, quantity="frequency_loss")
    assert 2 < known["values"][0] < log(256)


def test_steps_repeat_exactly_and_the_first_arm_comes_first():
    steps = layer_worth.measure("tiny")
    assert len({repr(each.cell) for each in steps}) == len(steps) == 2 + 6 * 3 * 3
    arms = [each.cell["arm"] for each in steps if "arm" in each.cell]
    assert list(dict.fromkeys(arms))[:2] == ["pre", "no_layers"]
    step = next(each for each in steps if each.cell.get("arm") == "half_depth")
    assert step.run() == step.run()


@pytest.mark.parametrize("arm", [*ARMS, *CONTROLS])
def test_what_trains_and_what_does_not(arm):
    trained = dict(layer_worth.train(arm, 1e-2, 0, TINY).named_parameters())
    drawn = dict(layer_worth.fresh(arm, TINY, 0).named_parameters())
    moved = {n for n in drawn if not torch.equal(trained[n], drawn[n])}
    blocks = {n for n in drawn if n.startswith("blocks.")}
    assert moved == drawn.keys() - (blocks if arm in FROZEN.values() else set())
    assert (len(blocks) == 0) == (arm == "no_layers")


def test_arms_start_as_those_of_the_small_experiment():
    for arm, layers in (("pre", 4), ("sandwich", 4)):
        ours = layer_worth.fresh(arm, TINY, 1).state_dict()
        theirs = residual_growth.fresh(arm, layers, TINY, 1).state_dict()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    for twin, own in ((FROZEN[own], own) for own in FROZEN):
        ours = layer_worth.fresh(twin, TINY, 1).state_dict()
        theirs = layer_worth.fresh(own, TINY, 1).state_dict()
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    short = layer_worth.fresh("half_depth", TINY, 1)
    assert len(short.blocks) == TINY["layers"]  # two blocks a layer


def test_a_model_without_layers_has_its_own_loss():
    model = layer_worth.fresh("no_layers", TINY, 0)
    text = residual_growth.held_out(TINY)
    found = layer_worth.examine(model, "no_layers", TINY)
    assert found.keys() == {"loss"}
    assert found["loss"] == pytest.approx([loss_of(model, text).item()], rel=1e-5)


def made(record, values):
    """The record with values(row) in place of its own."""
    return with_values(record, values)


def planted(row):
    """Rows made up so that every number can be told by eye."""
    quantity, count = row["quantity"], len(row["values"])
    if quantity == "frequency_loss":
        return [3.0]
    loss = {"no_layers": 2.5, "sandwich": 1.5}.get(row["arm"], 2.0)
    if row["arm"] == "half_depth":
        loss += 0.1 * (row["seed"] - 1)
    if row["rate"] == 1e-2:
        loss += 1.0
        if row["arm"] == "pre" and row["seed"] == 0:
            return [None] * count
    if quantity == "without_layer":
        return [loss + 0.6] + [loss + 0.1] * (count - 2) + [loss + 0.2]
    more = {"without_upper_half": 1.0, "without_lower_half": 2.0}
    if quantity == "cosine":
        return [0.5] * (count // 2) + [0.9] * (count // 2)
    if quantity in ("loss", *more):
        return [loss + more.get(quantity, 0.0)]
    return [float(layer) for layer in range(1, count + 1)]


EXPECTED = {
    "half": "2",
    "pre_loss_a": "2.000",
    "pre_loss_c": "3.000",
    "pre_upper_a": "1.00",
    "pre_lower_best": "2.00",
    "pre_one_a": "0.150",
    "pre_share_a": "30%",
    "pre_cosine_a": "0.900",
    "pre_exponent_a": "2.00",
    "sandwich_gap_best": "−0.500 ± 0.000",
    "half_depth_gap_a": "0.000 ± 0.058",
    "no_layers_loss_best": "2.500",
    "frozen_pre_upper_at_b": "1.00",
    "pre_beyond_frozen_pre_b": "0.00 ± 0.00",
}


def test_facts_say_what_the_rows_say(record):
    facts = check_facts(layer_worth, made(record, planted), EXPECTED)
    assert "sandwich_gap_c" not in facts, "one run of Pre-Norm gave no number there"
    for language in ("zh", "en"):
        draw(layer_worth, made(record, planted), language)


def test_a_record_that_was_cut_off_has_facts_of_what_is_there(record):
    first = [row for row in record.rows if row["arm"] in (None, "pre", "no_layers")]
    cut = [row for row in record.rows if row["arm"] == "sandwich" and row["seed"] == 0]
    part = replace(record, rows=first + cut)
    facts = layer_worth.facts(part)
    assert "pre_upper_a" in facts and "no_layers_loss_best" in facts
    assert not any(name.startswith("sandwich") for name in facts)
    assert len(draw(layer_worth, part, "en").axes) == 2
