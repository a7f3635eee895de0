"""The experiment measures what its page says, and says it in both languages."""

from math import isclose, log

import pytest
import torch

from scripts.experiments import warmup_sensitivity
from scripts.measure.corpus import corpus, loss_of, sample
from scripts.measure.together import Together
from tests.experiment_checks import check_facts, draw, plain_step, select, with_values

TINY = warmup_sensitivity.SIZES["tiny"]
SEEDS = list(warmup_sensitivity.SEEDS)
VARIANTS = warmup_sensitivity.VARIANTS


def test_rows(rows):
    for layers in TINY["depths"]:
        for variant in VARIANTS:
            for rate in TINY["rates"]:
                for warm in warmup_sensitivity.WARM_UPS:
                    found = select(
                        rows,
                        variant=variant,
                        layers=layers,
                        learning_rate=rate,
                        warm_up=warm,
                        quantity="loss",
                    )
                    assert [row["seed"] for row in found] == SEEDS
                    assert all(len(row["values"]) == 2 for row in found)
    runs = select(rows, quantity="loss")
    assert len(runs) == 2 * 2 * 4 * 3 * len(SEEDS)
    assert all(log(2) < loss < 3 * log(256) for row in runs for loss in row["values"])
    (bytes_alone,) = select(rows, quantity="frequencies")
    assert 2.5 < bytes_alone["values"][0] < 4


def test_runs_of_a_seed_start_alike_and_end_apart(rows):
    for variant in VARIANTS:
        runs = select(rows, variant=variant, layers=2, seed=1, quantity="loss")
        assert len({row["values"][0] for row in runs}) == 1
        assert len({row["values"][1] for row in runs}) == len(runs)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_is_that_of_a_plain_loop(rows, variant):
    """torch's Adam and its schedules, one model, the same text."""
    layers, rate, warm, seed = 2, 3e-2, 0.5, 3
    assert rate in TINY["rates"] and warm * TINY["steps"] == 5
    model = warmup_sensitivity.fresh(variant, layers, TINY, seed)
    pieces = warmup_sensitivity.held_out("tiny")
    before = loss_of(model, pieces).item()
    adam = torch.optim.Adam(model.parameters(), rate)
    generator = torch.Generator().manual_seed(seed)
    training, held_out = corpus()
    for factor in (0.2, 0.4, 0.6, 0.8, 1, 1, 0.8, 0.6, 0.4, 0.2):
        text = sample(training, TINY["batch"], TINY["context"], generator)
        plain_step(adam, loss_of(model, text), rate * factor)
    (row,) = select(
        rows,
        variant=variant,
        layers=layers,
        learning_rate=rate,
        warm_up=warm,
        seed=seed,
        quantity="loss",
    )
    after = loss_of(model, pieces).item()
    assert row["values"] == pytest.approx([before, after], rel=1e-5)
    known = bytes(held_out.tolist())
    assert all(bytes(piece) in known for piece in pieces.tolist())


def test_every_warm_up_has_the_same_sum_of_factors():
    size = {**TINY, "steps": 200}
    factor = warmup_sensitivity.factors(size, "cpu")
    steps = torch.stack([factor(step) for step in range(200)])
    assert steps.max() == 1.0 and steps.min() > 0
    sums = steps.sum(0)
    assert sums.max() - sums.min() < 1
    for (_, warm, _), run in zip(warmup_sensitivity.cells(size), steps.T, strict=True):
        assert run.argmax() == max(0, round(200 * warm) - 1)


def test_arms_are_what_they_say():
    def weights(variant):
        model = warmup_sensitivity.fresh(variant, 3, TINY, 0)
        linear = [m for m in model.blocks.modules() if hasattr(m, "in_features")]
        return model, [m.weight for m in linear]

    pre, drawn = weights("pre")
    for variant in ("post", "sandwich"):
        model, others = weights(variant)
        assert all(map(torch.equal, drawn, others))
        assert torch.equal(model.head.weight, pre.head.weight)
    deep, scaled = weights("deepnorm")
    d, beta = TINY["d"], 24**-0.25
    for i, (one, other) in enumerate(zip(drawn, scaled, strict=True)):
        kept = 2 * d if i % 4 == 0 else 0  # queries and keys
        assert torch.equal(one[:kept], other[:kept])
        assert torch.allclose(beta * one[kept:], other[kept:])
    assert isclose(deep.blocks[0].alpha, 6**0.25)

    text = torch.arange(8)[None]
    for variant in VARIANTS:
        model = warmup_sensitivity.fresh(variant, 3, TINY, 0)
        seen = []
        model.head.register_forward_pre_hook(lambda _, x, seen=seen: seen.append(x[0]))
        model(text)
        rms = (
            seen[0].detach().square().mean(-1).sqrt()
        )  # the head reads a normed stream
        assert torch.allclose(rms, torch.ones(1, 8), atol=1e-3)
    x = torch.randn(2, 5, d)
    for variant in VARIANTS:
        block = warmup_sensitivity.fresh(variant, 3, TINY, 0).blocks[1]
        change = (block(5 * x) - 5 * x).std() / 5
        assert (change < 0.3) == (variant in ("pre", "sandwich"))
    block = warmup_sensitivity.fresh("sandwich", 3, TINY, 0).blocks[1]
    added = block(x) - x  # what the sandwich's second norm lets through
    assert torch.allclose(added.square().mean(-1), torch.ones(2, 5), atol=1e-2)


def test_a_loss_that_is_no_number_is_null():
    size = TINY
    models = Together(warmup_sensitivity.stack("pre", 1, size, "cpu")[:3])
    models.parameters["head.weight"][1] = float("inf")
    losses = warmup_sensitivity.evaluate(models, "tiny", "cpu")
    assert losses[1] is None and losses[0] > 1 and losses[2] > 1


@pytest.fixture(scope="module")
def made(record):
    """Rows made up so that every number can be told by eye.

    Post-Norm learns at the least rate only, and with a long warm-up at both; seed
    0 of DeepNorm diverges at the greatest rate; the others always reach 2.
    """

    def values(row):
        if row["quantity"] == "frequencies":
            return [3.0]
        fast = row["learning_rate"] == TINY["rates"][-1]
        if row["variant"] == "post" and fast:
            return [6.0, 1.5 if row["warm_up"] == 0.5 else 2.96]
        if row["variant"] == "deepnorm" and fast and row["seed"] == 0:
            return [6.0, None if row["layers"] == 1 else 7.0]
        return [6.0, 2.0]

    return with_values(record, values)


def test_facts_say_what_the_rows_say(made):
    expected = {
        "seeds": "5",
        "least": "1",
        "most": "2",
        "rates": "2",
        "rate_least": "0.003",
        "rate_most": "0.03",
        "short": "10%",
        "long": "50%",
        "frequencies": "3.00",
        "runs_each": "10",
        # Post-Norm without or with a short warm-up, and one seed of DeepNorm
        "failed": str(2 * 2 * 5 + 2 * 3),
        "diverged": str(2 * 3),
        "post_least_none_failed": "5",
        "post_most_long_failed": "0",
        "post_least_none_sensitivity": "0.48",  # (2 + 2.96) / 2 - 2
        "post_least_long_sensitivity": "0.25",  # (2 + 1.5) / 2 - 1.5
        "post_least_none_best": "2.00",
        "post_least_gain": "0.500 ± 0.000",
        "post_least_gain_bound": "0.000",
        # the diverged one counts as its initial loss: (2 + 6) / 2 - 2
        "deepnorm_least_none_sensitivity_range": "[0.00, 2.00]",
        "deepnorm_most_none_sensitivity_range": "[0.00, 2.00]",
        "pre_most_short_sensitivity": "0.00",
        "pre_most_gain": "0.000 ± 0.000",
        "runs_placement": "60",
        "post_least_none_reach": "0.003",
        "post_least_long_reach": "0.03",
        "post_least_none_regret": "0.98",  # (2 + 2.96) / 2 - 1.5
        "pre_least_none_regret": "0.50",
        "post_most_behind_pre": "\u22120.500 ± 0.000",
        "deepnorm_most_behind_pre": "0.000 ± 0.000",
    }
    check_facts(warmup_sensitivity, made, expected)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(made, lang):
    figure = draw(warmup_sensitivity, made, lang)
    assert len(figure.axes) == 4
    for axis, failed in zip(figure.axes, (20, 6, 0, 0), strict=True):
        assert len(axis.texts) == 6 * 2
        strokes = [p for p in axis.patches if p.get_linewidth()]
        drawn = sum(len(p.get_path().vertices) for p in strokes)
        assert drawn == 2 * failed
        tiles = [p for p in axis.patches if not p.get_linewidth()]
        assert sum(len(p.get_path().vertices) for p in tiles) == 4 * 6 * 2
    assert figure.axes[0].texts[1].get_text() == "2.96"
