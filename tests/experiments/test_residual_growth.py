"""The experiment measures what its page says, and says it in both languages."""

from math import isclose, log

import pytest
import torch

from scripts.experiments import residual_growth
from scripts.measure.corpus import corpus, loss_of, sample
from scripts.measure.records import Record
from scripts.measure.together import alone, warm_up
from tests.experiment_checks import check_facts, draw, plain_step, select, with_values

TINY = residual_growth.SIZES["tiny"]
SEEDS = list(residual_growth.SEEDS)
ARMS = residual_growth.ARMS
LEAST, MOST = TINY["depths"]
LINES = [len(ARMS) - 1, 1 + len(TINY["rates"]), 2 * len(ARMS) + 1]


def test_rows(rows):
    stages = [("before", None)] + [("after", rate) for rate in TINY["rates"]]
    for arm in ARMS:
        for layers in TINY["depths"]:
            for stage, rate in stages:
                found = select(rows, arm=arm, layers=layers, stage=stage, rate=rate)
                for quantity in ("rms", "update", "cosine", "without_layer"):
                    runs = select(found, quantity=quantity)
                    assert [run["seed"] for run in runs] == SEEDS
                    assert all(len(run["values"]) == layers for run in runs)
                for quantity in ("loss", "without_upper_half", "without_lower_half"):
                    runs = select(found, quantity=quantity)
                    assert [run["seed"] for run in runs] == SEEDS
                    assert all(0 < run["values"][0] < 20 for run in runs)
    (known,) = select(rows, quantity="frequency_loss")
    assert 2 < known["values"][0] < log(256)


def test_arms_are_what_they_say():
    def fresh(arm):
        return residual_growth.fresh(arm, 3, TINY, 0)

    def writers(model):
        names = dict(model.named_parameters())
        return [names[n] for n in names if n.endswith("writer.weight")]

    def others(model):
        return {
            n.replace(".branch.", ".sublayer."): p
            for n, p in model.named_parameters()
            if p.ndim == 2 and not n.endswith("writer.weight")
        }

    pre = fresh("pre")
    x = torch.randn(2, 5, TINY["d"], generator=torch.Generator().manual_seed(1))
    for arm in ARMS:
        model = fresh(arm)
        ours, theirs = others(model), others(pre)
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
        factor = 6**-0.5 if arm == "small_writers" else 1.0
        for one, other in zip(writers(model), writers(pre), strict=True):
            assert torch.allclose(one, factor * other)
        assert isinstance(model.norm, torch.nn.Identity) == (arm == "post")
    for index, block in enumerate(fresh("scaling").blocks):
        size = block.norm(x).square().mean().sqrt().item()
        assert isclose(size, (index // 2 + 1) ** -0.5, rel_tol=1e-3)
    for arm, size in (("post", 1.0), ("sandwich", None)):
        y = fresh(arm).blocks[0](x)
        update = y if size else y - x
        assert isclose(update.square().mean().sqrt().item(), 1.0, rel_tol=1e-3)


def test_a_run_is_a_plain_loop_of_adam():
    rate, seed, layers = TINY["rates"][1], 3, LEAST
    models, runs = residual_growth.train_all("scaling", layers, TINY, TINY["rates"])
    ours = alone(models, runs.index((rate, seed)))

    model = residual_growth.fresh("scaling", layers, TINY, seed)
    named = dict(model.named_parameters())
    matrices = [p for p in named.values() if p.ndim == 2]
    vectors = [p for p in named.values() if p.ndim == 1]
    assert len(matrices) + len(vectors) == len(named)
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": 0.1},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=rate,
        betas=(0.9, 0.95),
    )
    factor = warm_up(TINY["steps"], 1)
    generator = torch.Generator().manual_seed(seed)
    for step in range(TINY["steps"]):
        text = sample(corpus()[0], TINY["batch"], TINY["context"], generator)
        plain_step(optimizer, loss_of(model, text), rate * factor(step), clip=1.0)
    for name, parameter in ours.named_parameters():
        other = named[name]
        if name.endswith("reader.bias") and len(other) == 3 * TINY["d"]:
            # Softmax ignores the keys' bias: its gradient is rounding alone.
            parameter, other = (
                torch.cat([each[: TINY["d"]], each[2 * TINY["d"] :]])
                for each in (parameter, other)
            )
        assert torch.allclose(parameter, other, atol=1e-5), name


def test_a_skipped_layer_is_one_whose_branches_give_nothing():
    """And nothing else is skipped: Pre-Norm with its writers set to zero."""
    text = residual_growth.held_out(TINY)
    model = residual_growth.fresh("pre", 4, TINY, 0)
    found = residual_growth.examine(model, 4, text)
    assert found["loss"][0] == pytest.approx(loss_of(model, text).item())

    def without(*layers):
        changed = residual_growth.fresh("pre", 4, TINY, 0)
        for layer in layers:
            for block in changed.blocks[2 * layer - 2 : 2 * layer]:
                torch.nn.init.zeros_(block.sublayer.writer.weight)
                torch.nn.init.zeros_(block.sublayer.writer.bias)
        return loss_of(changed, text).item()

    alone_missing = [without(layer) for layer in (1, 2, 3, 4)]
    assert found["without_layer"] == pytest.approx(alone_missing, rel=1e-5)
    assert found["without_upper_half"] == pytest.approx([without(3, 4)], rel=1e-5)
    assert found["without_lower_half"] == pytest.approx([without(1, 2)], rel=1e-5)


def test_facts_say_what_the_rows_say(record):
    """Rows made up so that every number can be told by eye."""
    bad = TINY["rates"][1]

    def values(row):
        quantity, count = row["quantity"], len(row["values"])
        if quantity == "frequency_loss":
            return [3.0]
        loss = {"scaling": 1.5, "post": 2.9}.get(row["arm"], 2.0)
        if row["arm"] == "sandwich":  # better for some seeds, worse for others
            loss += 0.1 * (row["seed"] - 2)
        if row["rate"] == bad:
            loss += 1.0
            if row["arm"] == "pre" and row["seed"] == 0:
                return [None] * count
        if quantity == "loss":
            return [loss]
        if quantity == "without_layer":
            return [loss + 0.6] + [loss + 0.1] * (count - 2) + [loss + 0.2]
        if quantity == "without_upper_half":
            return [loss + 1.0]
        if quantity == "without_lower_half":
            return [loss + 2.0]
        if quantity == "cosine":
            return [0.5] * (count // 2) + [0.9] * (count // 2)
        if quantity == "update":  # at a right angle: 1, 2, 3, ... as below
            return [1.0] + [(2 * n + 1) ** 0.5 / n for n in range(1, count)]
        return [float(layer) for layer in range(1, count + 1)]

    made = with_values(record, values)
    expected = {
        "seeds": "5",
        "least": "2",
        "most": "4",
        "rates": "2",
        "pre_most_rate": "0.001",
        "pre_most_loss_a": "2.000",
        "pre_most_loss_b": "3.000",
        "scaling_most_gap_a": "−0.500 ± 0.000",
        "scaling_most_gap_a_worse": "0/5",
        "sandwich_most_gap_best": "0.000 ± 0.071",
        "sandwich_upper_gap_a": "0.000 ± 0.000",
        "pre_depth_gap_best": "0.000 ± 0.000",
        "pre_most_rms_a": "4.00",
        "pre_most_exponent_a": "2.00",
        "pre_most_alignment_a": "0.00",
        "pre_all_power_a": "[1.000, 1.000]",
        "pre_all_exponential_wins_a": "0/5",
        "pre_most_cosine_a": "0.900",
        "pre_most_one_a": "0.150",
        "pre_most_share_a": "30%",
        "pre_most_sum_a": "0.30",
        "pre_most_upper_best": "1.00",
    }
    facts = check_facts(residual_growth, made, expected)
    assert "scaling_most_gap_b" not in facts, "one run of Pre-Norm gave no number"
    for language in ("zh", "en"):
        draw(residual_growth, made, language)


@pytest.mark.parametrize(
    ("law", "percent"), [("exponential", 10.0), ("power", None), ("flat", 0.0)]
)
def test_the_shape_of_a_growth(law, percent):
    """A stream that follows one law exactly has R squared one under it, not less."""
    layers = range(1, 13)
    rms = {
        "exponential": [1.1**layer for layer in layers],
        "power": [layer**0.65 for layer in layers],
        "flat": [1.0 for _ in layers],
    }[law]
    for first in (1, 5):
        shape = residual_growth._shape(rms, first)
        other = {"exponential": "power", "power": "exponential"}.get(law)
        if other:
            assert shape[law] == pytest.approx(1) and shape[other] < 0.995
        if percent is not None:
            assert shape["percent"] == pytest.approx(percent)
    if law == "power":
        assert shape["exponent"] == pytest.approx(1.3)


def test_writes_compares_what_two_layers_add():
    """From the record's relative updates: the last layer's over the second's."""
    rms, added = [1.0], [2.0, 3.0, 6.0]
    for size in added:
        rms.append((rms[-1] ** 2 + size**2) ** 0.5)
    rows = [
        {"quantity": "rms", "values": rms},
        {
            "quantity": "update",
            "values": [9.0, *(a / r for a, r in zip(added, rms[:3], strict=True))],
        },
        {"quantity": "cosine", "values": [0.5] * 4},
    ]
    place = dict(arm="pre", layers=4, stage="before", rate=None, seed=0)
    made = Record("residual_growth", "m", "tiny", {}, [], [r | place for r in rows])
    states = residual_growth._states(made, "pre", 4, "before", None)
    assert states["writes"] == [pytest.approx(3.0)]
    assert states["alignment"] == [pytest.approx(0.0, abs=1e-9)]
