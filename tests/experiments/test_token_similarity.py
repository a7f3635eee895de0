"""The experiment measures what its page says, and says it in both languages."""

from math import isclose

import pytest
import torch
from torch.nn import functional as F

from scripts.experiments import token_similarity as experiment
from tests.experiment_checks import check_facts, select, with_values

TINY = experiment.SIZES["tiny"]
SEEDS = list(experiment.SEEDS)
LINES = [6, 6]


def test_rows(rows):
    for arm, setting, d, _, layers in experiment.stacks(TINY):
        found = select(rows, arm=arm, setting=setting, d=d, layers=layers)
        names = {row["quantity"] for row in found}
        assert {"cosine", "between", "distance", "rms", "first_token"} <= names
        assert ("grad_query" in names) == (setting != "no_attention")
        assert ("grad_ffn" in names) == (setting != "attention_only")
        for name in names:
            of = select(found, quantity=name)
            assert [row["seed"] for row in of] == SEEDS
            assert all(len(row["at"]) == len(row["values"]) for row in of)
        (first, *_) = select(found, quantity="cosine")
        assert first["at"] == list(range(layers + 1))


def last(rows, quantity, **wanted):
    wanted = {"d": 16, "layers": 3, "setting": "decoder", "seed": 2} | wanted
    (row,) = select(rows, quantity=quantity, **wanted)
    return row["values"][-1]


@pytest.mark.parametrize("arm", experiment.ARMS)
def test_quantities_are_those_of_the_model_run_plainly(rows, arm):
    model = experiment.fresh(arm, "decoder", 16, 2, 3, 2)
    text = experiment.text_for("decoder", TINY, 2)
    x = model.embedding(text[:, :-1])
    for block in model.blocks:
        x = block(x)
    unit = F.normalize(x.detach(), dim=-1)
    pairs = [
        float(unit[b, i] @ unit[b, j])
        for b in range(2)
        for i in range(5)
        for j in range(i)
    ]
    assert last(rows, "cosine", arm=arm) == pytest.approx(sum(pairs) / len(pairs))
    assert last(rows, "rms", arm=arm) == pytest.approx(
        float(x.detach().square().mean().sqrt())
    )
    model.zero_grad()
    logits = model(text[:, :-1])
    F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()).backward()
    attention, feed_forward = experiment.branches(model)[-1]
    named = dict(attention.named_parameters())
    for i, role in enumerate(("query", "key", "value")):
        if f"{role}.weight" in named:
            grad = named[f"{role}.weight"].grad
        else:
            fused = named.get("reader.weight", named.get("qkv.weight"))
            grad = fused.grad[16 * i : 16 * i + 16]
        found = last(rows, f"grad_{role}", arm=arm)
        assert found == pytest.approx(float(grad.norm()), rel=1e-9, abs=1e-15)
    *_, weight = (p for p in feed_forward.parameters() if p.ndim == 2)
    assert last(rows, "grad_ffn", arm=arm) == pytest.approx(float(weight.grad.norm()))


def test_first_token_share_of_a_model_that_mixes_nothing(rows):
    for d in (8, 16):
        wanted = dict(arm="post", setting="no_attention", d=d, layers=3)
        for row in select(rows, quantity="first_token", **wanted):
            assert row["values"] == [0]
        for row in select(rows, arm="rezero", quantity="first_token", d=d):
            assert row["values"] == [0]


def test_settings_are_what_they_say():
    def fresh(arm, setting="decoder"):
        return experiment.fresh(arm, setting, 8, 2, 3, 0)

    usual, equal = fresh("post"), fresh("post", "equal_weights")
    sharper = fresh("post", "queries_x_4")
    for one, two, three in zip(
        *(experiment.branches(model) for model in (usual, equal, sharper)), strict=True
    ):
        weights = [each[0].reader.weight for each in (one, two, three)]
        assert not weights[1][:8].any() and torch.equal(weights[1][8:], weights[0][8:])
        assert torch.equal(weights[2][:8], 4 * weights[0][:8])
        assert torch.equal(weights[2][8:], weights[0][8:])
        assert isinstance(two[1].activation, torch.nn.ReLU)
    assert [pair[0] for pair in experiment.branches(fresh("pre", "no_attention"))] == [
        None
    ] * 3
    assert [
        pair[1] for pair in experiment.branches(fresh("pre", "attention_only"))
    ] == [None] * 3
    beta = (8 * 3) ** -0.25
    for one, two in zip(
        experiment.branches(usual), experiment.branches(fresh("deepnorm")), strict=True
    ):
        a, b = one[0].reader.weight, two[0].reader.weight
        assert torch.equal(a[:16], b[:16]) and torch.allclose(beta * a[16:], b[16:])
        assert torch.allclose(beta * one[0].writer.weight, two[0].writer.weight)
        assert torch.allclose(beta * one[1].reader.weight, two[1].reader.weight)
        assert torch.allclose(beta * one[1].writer.weight, two[1].writer.weight)
    assert isclose(fresh("deepnorm").blocks[0].alpha, 6**0.25)
    assert isclose(fresh("scaled").blocks[0].alpha, 6**0.5)
    for arm in experiment.ARMS:
        ends = not isinstance(fresh(arm).norm, torch.nn.Identity)
        assert ends == (
            arm
            in ("pre", "sandwich", "branch_output", "branch_output_qk", "normformer")
        )


def test_entropy_of_equal_and_of_certain_weights():
    attention, _ = experiment.branches(
        experiment.fresh("post", "equal_weights", 8, 2, 1, 0)
    )[0]
    x = torch.randn(2, 5, 8, dtype=torch.float64)
    assert isclose(experiment.entropy(attention, x), 1.0)
    attention, _ = experiment.branches(
        experiment.fresh("post", "queries_x_1000000", 8, 2, 1, 0)
    )[0]
    assert experiment.entropy(attention, x) < 1e-3


def test_facts_say_what_the_rows_say(record):
    """Rows made up so that every number can be told by eye."""

    def values(row):
        made = {
            "cosine": 0.25 if row["arm"] != "post" else 0.995,
            "rms": 3.0,
            "first_token": 0.125,
            "grad_query": 0.5,
            "grad_value": 2.0,
            "grad_ffn": 1.0 + (row["seed"] == 3),
        }
        found = [made.get(row["quantity"], 1.0)] * len(row["values"])
        if row["quantity"] == "grad_ffn":
            found[-1] = 1.0
        return found

    made = with_values(record, values)
    expected = {
        "seeds": "8",
        "most": "3",
        "narrow": "8",
        "wide": "16",
        "pre_cosine_wide": "0.25",
        "post_alike_wide": "0",
        "pre_alike_wide": "–",
        "pre_rms_wide": "3.00",
        "deepnorm_first_token_wide": "0.12",
        "pre_ratio_last_wide": "0.25",
        "post_ffn_spread_wide": "2.00",
        "post_bytes_cosine_narrow": "0.99",
    }
    check_facts(experiment, made, expected)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (3e-16, "< 10⁻¹²"),
        (-2e-15, "< 10⁻¹²"),
        (4.2e-9, "4.2 × 10⁻⁹"),
        (0.0123, "0.012"),
        (0.123, "0.12"),
        (12.3, "12"),
        (613000.0, "6.1 × 10⁵"),
    ],
)
def test_short(value, text):
    assert experiment.short(value) == text
