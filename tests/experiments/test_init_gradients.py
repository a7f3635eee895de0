"""The experiment measures what its page says, and says it in both languages."""

from itertools import product
from math import isclose

import pytest
import torch

from scripts.experiments import init_gradients
from tests.experiment_checks import check_facts, draw, select, with_values

TINY = init_gradients.SIZES["tiny"]
SEEDS = list(init_gradients.SEEDS)
LINES = [7] * 4


def test_rows(rows):
    for depth, d in product(TINY["depths"], TINY["widths"]):
        cell = dict(layers=depth, d=d, dtype="float64")
        for variant in init_gradients.VARIANTS:
            for matrix in init_gradients.MATRICES:
                wanted = dict(variant=variant, setting="decoder", quantity=matrix)
                found = select(rows, **cell, **wanted)
                assert [row["seed"] for row in found] == SEEDS
                assert all(len(row["values"]) == depth for row in found)
                assert all(min(row["values"]) > 0 for row in found)
        for variant in init_gradients.THEOREM:
            found = select(rows, variant=variant, setting="theorem", **cell)
            assert [row["quantity"] for row in found] == ["ffn_out"] * len(SEEDS)
    assert len(select(rows, dtype="float32", d=TINY["widths"][0])) == 2 * len(SEEDS)


def test_widths_are_a_factor_of_four_apart():
    for name in ("small", "full"):
        narrow, wide = init_gradients.SIZES[name]["widths"]
        assert wide >= 4 * narrow


@pytest.mark.parametrize("d", TINY["widths"])
@pytest.mark.parametrize("setting", ["decoder", "theorem"])
@pytest.mark.parametrize("variant", init_gradients.VARIANTS)
def test_norms_are_those_of_each_model_alone(rows, variant, setting, d):
    if setting == "theorem" and variant not in init_gradients.THEOREM:
        return
    depth, seed = TINY["depths"][-1], 3
    model = init_gradients.fresh(variant, setting, depth, d, TINY["heads"], seed)
    text = init_gradients.random_text(TINY, seed)
    init_gradients.next_token_loss(model, text).backward()
    linear = [m for m in model.blocks.modules() if isinstance(m, torch.nn.Linear)]
    assert len(linear) == 4 * depth
    shapes = {tuple(m.weight.shape) for m in linear}
    wide = {(d, d)} if setting == "theorem" else {(4 * d, d), (d, 4 * d)}
    assert shapes == {(3 * d, d), (d, d)} | wide
    for i, matrix in enumerate(init_gradients.MATRICES):
        found = select(
            rows,
            variant=variant,
            setting=setting,
            layers=depth,
            d=d,
            seed=seed,
            dtype="float64",
            quantity=matrix,
        )
        for row in found:
            alone = [float(m.weight.grad.norm()) for m in linear[i::4]]
            assert row["values"] == pytest.approx(alone, rel=1e-10)


def test_settings_are_what_they_say():
    def fresh(variant, setting="decoder"):
        return init_gradients.fresh(variant, setting, 3, d, TINY["heads"], 0)

    d = TINY["widths"][0]
    simple = fresh("post", "theorem").blocks[0].sublayer
    assert simple.heads == 1
    assert not simple.reader.weight[: 2 * d].any()
    assert simple.reader.weight[2 * d :].std() > 0.5 * d**-0.5
    weights = [
        m.weight for m in fresh("post").blocks.modules() if hasattr(m, "in_features")
    ]
    scaled = [
        m.weight
        for m in fresh("deepnorm").blocks.modules()
        if hasattr(m, "in_features")
    ]
    beta = (8 * 3) ** -0.25
    for i, (one, other) in enumerate(zip(weights, scaled, strict=True)):
        if i % 4 == 0:  # queries and keys are not scaled
            assert torch.equal(one[: 2 * d], other[: 2 * d])
            one, other = one[2 * d :], other[2 * d :]
        assert torch.allclose(beta * one, other)
    assert isclose(fresh("deepnorm").blocks[0].alpha, 6**0.25)
    for variant in init_gradients.VARIANTS[:5]:
        ends = not isinstance(fresh(variant).norm, torch.nn.Identity)
        assert ends == (variant in ("pre", "sandwich"))


def test_facts_say_what_the_rows_say(record):
    """Rows made up so that every number can be told by eye."""

    def values(row):
        count, matrix = row["layers"], row["quantity"]
        if matrix != "ffn_out":
            return [1.0] * count
        size = {"post": 1.0, "pre": count**-0.5}.get(row["variant"], count**0.5)
        size *= 1.001 if row["dtype"] == "float32" else 1.0
        first = 4 if row["d"] == TINY["widths"][0] else 0.5 * (1 + row["seed"] // 4)
        return [first * size] + [size] * (count - 1)

    made = with_values(record, values)
    expected = {
        "seeds": "8",
        "least": "2",
        "most": "3",
        "post_last_slope": "0.00",
        "pre_last_slope": "−0.50",
        "pre_last_slope_range": "[−0.50, −0.50]",
        "deepnorm_last_slope": "0.50",
        "pre_ratio_most": "4.0",
        "post_attention_share": "22%",
        "float32_gap": "1e-03",
        "d": "8",
        "d_wide": "16",
        "post_wide_last_slope": "0.00",
        "post_wide_ratio_most": "0.8",
        "post_wide_ratio_most_range": "[0.5, 1.0]",
        "post_larger_most": "8",
        "post_wide_larger_most": "0",
        "post_apart_most": "1.0",
        "post_wide_apart_most": "2.0",
    }
    check_facts(init_gradients, made, expected)


def test_panels_have_one_scale_and_name_their_width(record):
    axes = draw(init_gradients, record, "en").axes
    assert len({axis.get_ylim() for axis in axes}) == 1
    titles = [axis.get_title(loc="left") for axis in axes]
    assert [title.split()[-1] for title in titles] == ["8", "16", "8", "16"]
