"""The experiment measures what its page says, and says it in both languages."""

from math import log

import pytest
import torch

from scripts.experiments import norm_free_control
from scripts.experiments.norm_free_control import ARMS, CONTROLS, FROZEN, RATES, SEEDS
from scripts.measure.corpus import loss_of
from tests.experiment_checks import check_facts, draw, select, with_values

TINY = norm_free_control.SIZES["tiny"]
LINES = [len(ARMS) + len(set(CONTROLS))]


def test_rows(rows):
    for arm in (*ARMS, *CONTROLS):
        for rate in RATES:
            found = select(rows, arm=arm, rate=rate, quantity="held_out")
            assert [row["seed"] for row in found] == list(SEEDS)
            assert {len(row["values"]) for row in found} == {5}
    (guess,) = select(rows, quantity="frequencies")[0]["values"]
    assert 2 < guess < log(256)
    assert len(rows) == 13 * len(RATES) * len(SEEDS) + 1


@pytest.mark.parametrize("arm", [*ARMS, *CONTROLS])
def test_what_trains_and_what_does_not(arm):
    trained, _ = norm_free_control.train(arm, 1e-2, 0, TINY)
    drawn = norm_free_control.fresh(arm, TINY, 0)
    pairs = zip(trained.named_parameters(), drawn.parameters(), strict=True)
    moved = {name for (name, one), other in pairs if not torch.equal(one, other)}
    every = {name for name, _ in drawn.named_parameters()}
    blocks = {name for name in every if name.startswith("blocks.")}
    assert moved == (every - blocks if arm.startswith("frozen_") else every)
    assert (len(blocks) == 0) == arm.startswith("no_layers")


def test_a_frozen_model_is_the_model_as_drawn():
    text = torch.randint(256, (2, 9))
    for arm, twin in FROZEN.items():
        one, other = (norm_free_control.fresh(a, TINY, 1) for a in (arm, twin))
        if arm == "re_zero":  # its branches add nothing yet; the heads are two draws
            other.embedding, other.head = one.embedding, one.head
        assert torch.allclose(one(text), other(text), atol=1e-5), arm


def test_a_look_is_the_loss_of_the_model():
    model, losses = norm_free_control.train("skip_init", 1e-2, 0, TINY)
    held_out = norm_free_control.texts(TINY)[1]
    assert losses[-1] == pytest.approx(loss_of(model, held_out).item(), rel=1e-5)
    drawn = norm_free_control.fresh("skip_init", TINY, 0)
    assert losses[0] == pytest.approx(loss_of(drawn, held_out).item(), rel=1e-5)


def made(record, loss):
    """The record with final losses loss(row)."""

    def values(row):
        return [*row["values"][:-1], loss(row)]

    return with_values(record, values, quantity="held_out")


def test_facts_say_what_the_rows_say(record):
    """Learned is: every run below every run of its own controls at their best."""

    def loss(row):
        arm, rate, seed = row["arm"], row["rate"], row["seed"]
        if arm in CONTROLS:
            at_best = 2.5 if arm != "frozen_dyt_half" else 2.0
            return at_best + 0.01 * seed + (0.0 if rate == 1e-2 else 0.3)
        if arm == "plain" and rate == 3e-2:
            return None if seed else 2.2
        if arm == "re_zero":
            return 2.1 - 0.01 * seed - (0.1 if rate == 3e-3 else 0.0)
        return 2.2 + 0.01 * seed - (0.1 if rate == 1e-2 else 0.0)

    expected = {
        "rms_norm_rate": "0.01",
        "rms_norm_end": "2.110",
        "rms_norm_greatest_learned": "0.1",
        "plain_greatest_learned": "0.1",
        "dyt_half_greatest_learned": "–",
        "re_zero_rate": "0.003",
        "re_zero_minus_rms_norm": "−0.120 ± 0.012",
        "no_layers_rate": "0.01",
        "bytes": "64",
    }
    check_facts(norm_free_control, made(record, loss), expected)


def test_plot_with_runs_that_ended(record):
    def loss(row):
        return None if row["arm"] == "plain" else 2.0

    draw(norm_free_control, made(record, loss), "en")
