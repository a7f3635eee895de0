"""The experiment measures what its page says, and says it in both languages."""

import pytest
import torch

from scripts.experiments import qk_update_loss
from scripts.experiments.qk_update_loss import ARMS, CONTROLS, RATES, SEEDS
from tests.experiment_checks import select, with_values

TINY = qk_update_loss.SIZES["tiny"]
LINES = [len(ARMS) + 1, len(ARMS)]


def test_rows(rows):
    for arm in (*ARMS, *CONTROLS):
        for rate in RATES:
            found = select(rows, arm=arm, rate=rate, quantity="loss")
            assert [row["seed"] for row in found] == list(SEEDS)


@pytest.mark.parametrize("arm", [*ARMS, *CONTROLS])
def test_what_trains_and_what_does_not(arm):
    trained = dict(qk_update_loss.train(arm, 1e-3, 0, TINY).named_parameters())
    drawn = dict(qk_update_loss.fresh(arm, TINY, 0).named_parameters())
    still = {name for name in drawn if torch.equal(trained[name], drawn[name])}
    wanted = {
        "frozen_scores": {n for n in drawn if ".query.w" in n or ".key.w" in n},
        "no_gain": {n for n in drawn if "sublayer" in n and n.endswith("gain")},
    }
    assert still == wanted.get(arm, set()), still ^ wanted.get(arm, set())
    assert (arm == "no_gain") == bool(wanted["no_gain"] & still)


def test_slow_matrices_take_a_tenth_of_the_step():
    """Adam's first step is the rate, whatever the gradient, up to its epsilon."""
    one = TINY | {"steps": 1}
    moved = {}
    for arm in ("plain", "slow_scores"):
        model, drawn = (
            qk_update_loss.train(arm, 1e-3, 0, one),
            qk_update_loss.fresh(arm, one, 0),
        )
        pairs = zip(model.named_parameters(), drawn.parameters(), strict=True)
        moved[arm] = {n: (p - q).abs().max().item() for (n, p), q in pairs}
    for name, step in moved["plain"].items():
        share = 0.1 if ".query.w" in name or ".key.w" in name else 1.0
        assert moved["slow_scores"][name] == pytest.approx(share * step, rel=0.05)


def test_held_matrices_keep_each_heads_length_and_the_function():
    model = qk_update_loss.train("held", 0.1, 0, TINY)
    drawn = qk_update_loss.fresh("held", TINY, 0)
    text = torch.arange(TINY["time"])[None]
    before, heads = model(text), TINY["heads"]
    for now, first in zip(*map(qk_update_loss.scores, (model, drawn)), strict=True):
        wanted = qk_update_loss.lengths(first, heads)
        torch.testing.assert_close(qk_update_loss.lengths(now, heads), wanted)
        assert not torch.allclose(now, first)
        qk_update_loss.hold(now, 3 * wanted)
        torch.testing.assert_close(qk_update_loss.lengths(now, heads), 3 * wanted)
    torch.testing.assert_close(model(text), before, rtol=1e-3, atol=1e-3)


def planted(row):
    if row["quantity"] == "largest_logit":
        return 100.0
    worse = {"plain": 1.0, "slow_scores": 0.5, "no_layers": 2.0}
    value = 1 + worse.get(row["arm"], 0.0) + (row["rate"] != 1e-2)
    return None if row["arm"] == "plain" and row["rate"] == 1.0 else value


def test_facts_say_what_the_rows_say(record):
    made = with_values(record, planted, "value")
    facts = qk_update_loss.facts(made)
    assert facts["plain_loss_b"] == "2.00" and facts["qk_norm_loss_c"] == "2.00"
    assert facts["no_layers_loss"] == "3.00"
    assert facts["slow_scores_gap_c"].startswith("0.500")
    assert "plain_gap_f" not in facts and "slow_scores_gap_f" in facts
    assert facts["no_gain_logit_a"] == "100"
