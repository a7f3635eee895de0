"""The experiment measures what its page says, and says it in both languages."""

from math import isclose, log

import pytest
import torch

from scripts.experiments import residual_mean
from snippets.rms_norm.small_decoder import SmallDecoder
from tests.experiment_checks import check_facts, draw, select, with_values

LINES = [4, 7]


def test_rows(rows):
    layers = residual_mean.SIZES["tiny"]["layers"]
    for norm, activation in residual_mean.VARIANTS:
        for seed in residual_mean.SEEDS:
            run = select(rows, norm=norm, activation=activation, seed=seed)
            for stage in ("before", "after"):
                found = select(run, stage=stage, quantity="stream")
                assert [r["place"] for r in found] == list(range(2 * layers + 1))
                found = select(run, stage=stage, quantity="hidden")
                assert [r["place"] for r in found] == list(range(layers))
                (loss,) = select(run, stage=stage, quantity="loss")
                assert log(2) < loss["value"] < 3 * log(256)
            others = {r["quantity"] for r in run} - {"loss", "stream", "hidden"}
            swapped = {"loss_swapped", "loss_folded"}
            assert others == (swapped if norm == "LayerNorm" else set())
    shares = [r for r in rows if r["place"] is not None]
    assert all(0 < r["value"] < 1 for r in shares)


def test_training_changes_the_model_and_folding_does_not(rows):
    for run in select(rows, norm="LayerNorm", stage="after", quantity="loss"):
        same = {k: run[k] for k in ("norm", "activation", "seed")}
        (before,) = select(rows, stage="before", quantity="loss", **same)
        (folded,) = select(rows, quantity="loss_folded", **same)
        (swapped,) = select(rows, quantity="loss_swapped", **same)
        assert before["value"] != run["value"]
        assert isclose(folded["value"], run["value"], rel_tol=1e-5)
        assert swapped["value"] != run["value"]


def test_evaluate_takes_the_share_of_each_token():
    """Against shares computed one token at a time, as squared cosines."""
    torch.manual_seed(0)
    model = SmallDecoder(16, 2, 2, 8)
    batches = [torch.randint(256, (3, 9)) for _ in range(2)]
    loss, stream, hidden = residual_mean.evaluate(model, batches)

    def share(x):
        return torch.cosine_similarity(x, torch.ones_like(x), dim=-1).square().mean()

    expected = []
    for text in batches:
        x, here = model.token(text[:, :-1]) + model.position.weight[:8], []
        for branch in model.branches:
            here.append(share(x))
            if hasattr(branch.body, "activation"):
                read = branch.body.reader(branch.norm(x))
                last = torch.nn.functional.gelu(read)
                here.append(share(last))
            x = branch(x)
        expected.append(torch.stack([*here, share(x)]))
    wanted = torch.stack(expected).mean(0).tolist()
    ours = [stream[0], stream[1], hidden[0], stream[2], stream[3], hidden[1], stream[4]]
    assert ours == pytest.approx(wanted, rel=1e-4)
    assert loss == pytest.approx(
        sum(float(residual_mean.loss_of(model, t).detach()) for t in batches) / 2
    )
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_facts_say_what_the_rows_say(record):
    """Rows made up so that every number can be told by eye."""

    def share(row):
        if row["quantity"] == "stream":
            if row["norm"] == "RMSNorm":
                return 0.02
            return 0.01 if row["stage"] == "before" else 0.0025
        return {"ReLU": 0.3, "GELU": 0.1, "SiLU": 0.05}[row["activation"]]

    losses = {"loss": 2.0, "loss_swapped": 2.5, "loss_folded": 2.0}
    made = with_values(
        record, lambda row: losses.get(row["quantity"]) or share(row), "value"
    )
    expected = {
        "chance": "6.2%",
        "hidden_chance": "1.6%",
        "stream_before": "1%",
        "stream_after": "0.25%",
        "stream_after_highest": "0.25%",
        "stream_after_rms_norm": "2%",
        "angle_after": "2.9°",
        "relu_after": "30%",
        "gelu_before": "10%",
        "silu_after": "5%",
        "swap_cost": "0.5000",
        "loss_seed_range": "0.000",
    }
    check_facts(residual_mean, made, expected)


def test_panels_have_one_scale(record):
    top, bottom = draw(residual_mean, record, "en").axes
    assert top.get_ylim() == bottom.get_ylim()
