"""The experiment measures what its page says, and says it in both languages."""

from math import log

import pytest
import torch

from scripts.experiments import attention_control
from scripts.experiments.attention_control import ARMS, CONTROLS, RATES, SEEDS
from scripts.measure.corpus import loss_of
from snippets.qk_norm.attention import largest_logit
from tests.experiment_checks import check_facts, draw, select, with_values

TINY = attention_control.SIZES["tiny"]
LINES = [len(ARMS) + len(CONTROLS), 7]


def test_rows(rows):
    for arm in (*ARMS, *CONTROLS):
        quantities = {"loss", "largest_logit", "entropy", "least_entropy"}
        quantities = {"loss"} if arm == "no_layers" else quantities
        quantities |= {"qk_norm": {"bound"}, "qk_clip": {"clipped"}}.get(arm, set())
        assert {row["quantity"] for row in select(rows, arm=arm)} == quantities
        for rate in RATES:
            found = select(rows, arm=arm, rate=rate, quantity="loss")
            assert [row["seed"] for row in found] == list(SEEDS)
            assert {len(row["values"]) for row in found} == {5}
    (frequency,) = select(rows, quantity="frequency_loss")[0]["values"]
    assert 2 < frequency < log(256)


@pytest.mark.parametrize("arm", [*ARMS, *CONTROLS])
def test_what_trains_and_what_does_not(arm):
    trained, *_ = attention_control.train(arm, 1e-2, 0, TINY)
    drawn = attention_control.fresh(arm, TINY, 0)
    moved = {
        name
        for (name, one), other in zip(
            trained.named_parameters(), drawn.parameters(), strict=True
        )
        if not torch.equal(one, other)
    }
    every = {name for name, _ in drawn.named_parameters()}
    scores = {n for n in every if ".query." in n or ".key." in n}
    blocks = {n for n in every if n.startswith("blocks.")}
    expected = {"frozen": blocks, "frozen_qk_norm": blocks, "frozen_scores": scores}
    assert moved == every - expected.get(arm, set())
    assert (len(blocks) == 0) == (arm == "no_layers")


def test_all_start_from_the_same_matrices():
    plain = dict(attention_control.fresh("plain", TINY, 1).named_parameters())
    for arm in (*ARMS, *CONTROLS):
        for name, one in attention_control.fresh(arm, TINY, 1).named_parameters():
            if not name.endswith("_norm.gain"):
                same = torch.equal(one, plain[name])
                assert same or (arm == "no_layers" and name == "head.weight"), name


def test_the_clip_holds_the_logits():
    tau = 0.05
    model, _, clipped = attention_control.train("qk_clip", 1e-2, 0, TINY, tau)
    assert clipped > 0
    text = torch.randint(256, (2, 9))
    _, logits = model(text[:, :-1], watch=True)
    free, *_ = attention_control.train("plain", 1e-2, 0, TINY)
    _, other = free(text[:, :-1], watch=True)
    largest, unclipped = (
        max(largest_logit(layer).max() for layer in each) for each in (logits, other)
    )
    assert largest < unclipped


def test_a_look_is_the_loss_of_the_model():
    text = attention_control.texts(TINY)[1]
    for arm in ("plain", "qk_norm", "no_layers"):
        model = attention_control.fresh(arm, TINY, 0)
        noted = attention_control.looked(model, arm, TINY, text)
        assert noted["loss"] == pytest.approx(loss_of(model, text).item(), rel=1e-5)
        if arm != "no_layers":
            assert 0 < noted["least_entropy"] <= noted["entropy"] <= 1.01
    assert noted.keys() == {"loss"}


def made(record, loss):
    """The record with final losses loss(row)."""

    def values(row):
        return [*row["values"][:-1], loss(row)]

    return with_values(record, values, quantity="loss")


def test_facts_say_what_the_rows_say(record):
    """Learned is: every run below every run of both controls at their best."""

    def loss(row):
        arm, rate, seed = row["arm"], row["rate"], row["seed"]
        if arm in CONTROLS:
            return 2.5 + 0.01 * seed + (0.0 if rate == 1e-1 else 0.3)
        if arm == "plain" and rate >= 1e-1:
            return None if rate == 1.0 else 2.4 + 0.1 * (seed == 2)
        if arm == "qk_norm":
            return 2.3 - 0.01 * seed - (0.2 if rate == 3e-2 else 0.0)
        return 2.3 + 0.01 * seed - (0.2 if rate == 1e-2 else 0.0)

    expected = {
        "plain_best_rate": "0.01",
        "plain_best_loss": "2.110",
        "plain_greatest_learned": "0.03",
        "plain_not_finite": "3",
        "qk_norm_best_rate": "0.03",
        "qk_norm_greatest_learned": "1",
        "qk_norm_minus_plain": "−0.020 ± 0.012",
        "soft_cap_minus_plain": "0.000 ± 0.000",
        "no_layers_best_rate": "0.1",
        "frozen_scores_greatest_learned": "–",
        "tokens": "64",
    }
    check_facts(attention_control, made(record, loss), expected)


def test_plot_with_runs_that_ended(record):
    def loss(row):
        return None if row["arm"] == "plain" and row["rate"] == 1.0 else 2.0

    draw(attention_control, made(record, loss), "en")
