"""The arms are what they say, one run is a plain run, and facts follow the rows."""

from math import inf

import pytest
import torch

from scripts.experiments import normformer_speed as experiment
from scripts.measure.corpus import corpus, loss_of, sample
from tests.experiment_checks import check_facts, draw, plain_step, select, with_values

TINY = experiment.SIZES["tiny"]
SEEDS = list(experiment.SEEDS)
RATES = TINY["learning_rates"]


def test_rows(rows):
    for arm in experiment.ARMS:
        for rate in experiment.rates_for(arm, TINY):
            wanted = dict(arm=arm, learning_rate=rate)
            found = select(rows, quantity="held_out", **wanted)
            assert [row["seed"] for row in found] == SEEDS
            assert all(len(row["values"]) == 8 / 2 + 1 for row in found)
            for moment in ("before", "after"):
                found = select(rows, quantity=f"fc2_gradients_{moment}", **wanted)
                assert all(len(row["values"]) == TINY["layers"] for row in found)
            found = select(rows, quantity="inner_gains", **wanted)
            inner = experiment.ARMS[arm][2] and arm != "norms_only"
            assert len(found) == (8 if inner else 0)
    assert len(select(rows, quantity="seconds_step")) == 2 * 7


def test_arms_are_what_they_say():
    """Equal matrices everywhere; and what each arm has beside them."""
    d, layers, heads = TINY["d"], TINY["layers"], TINY["heads"]
    base = experiment.fresh("pre", TINY, 3).state_dict()
    more = {
        "pre": 0,
        "head_scale": heads,
        "attention_norm": 2 * d,
        "inner_norm": 8 * d,
        "normformer": heads + 10 * d,
        "norms_only": 0,
    }
    text = sample(corpus()[0], 2, TINY["context"], torch.Generator().manual_seed(0))
    first = {}
    own = experiment.fresh("pre_default", TINY, 3).state_dict()
    both = experiment.fresh("normformer_default", TINY, 3).state_dict()
    assert own.keys() == base.keys() < both.keys()
    assert all(torch.equal(both[name], each) for name, each in own.items())
    assert own["token.weight"].std() < 0.03 < 0.9 < base["token.weight"].std()
    for arm, added in more.items():
        model = experiment.fresh(arm, TINY, 3)
        state = model.state_dict()
        assert all(torch.equal(state[name], each) for name, each in base.items())
        count = sum(each.numel() for each in model.parameters())
        assert count == sum(each.numel() for each in base.values()) + layers * added
        first[arm] = loss_of(model, text).item()
    assert first["head_scale"] == first["pre"]  # ones change nothing
    assert first["norms_only"] == first["normformer"]  # nor do gains of one
    three = {first[arm] for arm in ("pre", "attention_norm", "inner_norm")}
    assert len(three | {first["normformer"]}) == 4


def test_a_run_is_that_of_a_plain_loop(rows):
    """torch's AdamW on one model alone: clipping, warm-up, what decays."""
    arm, rate, seed = "normformer", RATES[1], 5
    model = experiment.fresh(arm, TINY, seed)
    training, held_out = corpus()
    fixed, own = (torch.Generator().manual_seed(s) for s in (0, seed))
    test = sample(held_out, TINY["held_out"], TINY["context"], fixed)
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, rate, betas=(0.9, 0.98))
    losses = []
    for step in range(TINY["steps"] + 1):
        if step % TINY["every"] == 0:
            losses.append(loss_of(model, test).item())
        if step < TINY["steps"]:
            text = sample(training, TINY["batch"], TINY["context"], own)
            now = rate * min(1, (step + 1) / TINY["warm"])
            plain_step(optimizer, loss_of(model, text), now, clip=1.0)
    wanted = dict(arm=arm, learning_rate=rate, seed=seed)
    (found,) = select(rows, quantity="held_out", **wanted)
    assert found["values"] == pytest.approx(losses, rel=1e-4)
    assert losses[-1] < losses[0]
    model.zero_grad()
    loss_of(model, test).backward()
    weights = [block.ffn.fc2.weight for block in model.branches]
    (found,) = select(rows, quantity="fc2_gradients_after", **wanted)
    alone = [weight.grad.abs().mean().item() for weight in weights]
    assert found["values"] == pytest.approx(alone, rel=1e-2)
    (found,) = select(rows, quantity="inner_gains", **wanted)
    gains = [block.ffn.norm.weight.abs().mean().item() for block in model.branches]
    assert found["values"] == pytest.approx(gains, rel=1e-4)


def test_steps_to_a_target():
    curve = ([10, 20, 30, 40], [4.0, 3.0, 3.5, 1.0])
    assert experiment.steps_to(4.5, curve) == 10
    assert experiment.steps_to(3.25, curve) == pytest.approx(17.5)
    assert experiment.steps_to(3.0, curve) == pytest.approx(20)
    assert experiment.steps_to(2.0, curve) == pytest.approx(36)
    assert experiment.steps_to(0.9, curve) == inf
    assert experiment.steps_to(2.0, ([10, 20], [inf, 1.0])) == 20
    assert experiment.smooth([3.0, 4.0, 5.0, 9.0]) == [4.0, 6.0]
    assert experiment.smooth([3.0, None, 5.0]) == [inf]


def test_diverged():
    assert experiment.diverged({"values": [5.0, None, 3.0]})
    assert experiment.diverged({"values": [5.0, 3.0, 5.0]})
    assert not experiment.diverged({"values": [5.0, 7.0, 4.9]})


def told(record):
    """Losses that fall in a straight line, so that every fact is told by eye."""
    fall = {"pre": 1.0, "normformer": 2.0, "head_scale": 1.0, "attention_norm": 0.5}

    def values(row):
        if row["quantity"] == "held_out":
            slope = fall.get(row["arm"], 1.0)
            if row["learning_rate"] == experiment.rates_for(row["arm"], TINY)[0]:
                slope /= 4  # the other rate is the better one
            if row["arm"] == "inner_norm" and row["seed"] == 0:
                return [19.0, None, None, None, None]
            return [19.0 - slope * step for step in (0, 2, 4, 6, 8)]
        if row["quantity"] == "seconds_step":
            return [3.0 if row["arm"] == "normformer" else 2.0] * 2
        return [2.0, 0.5]

    return with_values(record, values)


def test_facts_say_what_the_rows_say(record):
    expected = {
        "seeds": "8",
        "runs": "128",
        "diverged": "2",
        "grid": "0.004 / 0.008",
        "grid_default": "0.002 / 0.004",
        "steps_half": "4",
        "steps_end": "6",
        "pre_rate": "0.008",
        "pre_loss": "13.000",
        "pre_loss_range": "[13.000, 13.000]",
        "normformer_loss": "7.000",
        "normformer_gap": "−6.000 ± 0.000",
        "attention_norm_gap_worse": "8/8",
        "normformer_ratio_end": "0.50",
        "normformer_ratio_end_range": "[0.50, 0.50]",
        "normformer_sooner_end": "8",
        "head_scale_ratio_half": "1.00",
        "head_scale_sooner_half": "0",
        "attention_norm_ratio_end": "> 1.00",
        "attention_norm_reached_end": "0",
        "inner_norm_reached_end": "7",
        "inner_norm_ratio_end": "1.00",
        "inner_norm_ratio_end_range": "[1.00, > 1.00]",
        "pre_gradient_ratio_a": "4.0",
        "first_gain": "2.00",
        "last_gain": "0.50",
        "normformer_time": "1.50",
        "normformer_time_wide_interval": "[1.50, 1.50]",
        "head_scale_time": "1.00",
        "normformer_default_ratio_end": "1.00",
        "noise": "0%",
    }
    check_facts(experiment, told(record), expected)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    figure = draw(experiment, told(record), lang)
    top, middle, bottom = figure.axes
    assert len(top.lines) == 3  # zero, and one line for each initialization
    assert list(top.lines[1].get_ydata()) == [-2, -4, -6]
    assert len(middle.lines) == len(experiment.ARMS)
    assert len(bottom.get_yticks()) == len(experiment.ARMS) - 2
