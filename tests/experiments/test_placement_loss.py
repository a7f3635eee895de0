"""The experiment measures what its page says, and says it in both languages."""

import pytest
import torch

from scripts.experiments import placement_loss
from scripts.measure.corpus import corpus, loss_of, sample
from scripts.measure.records import rows_problem
from tests.tiny import check_facts_and_words, draw, select, tiny_record, tiny_rows

TINY = placement_loss.SIZES["tiny"]
SEEDS = list(placement_loss.SEEDS)


@pytest.fixture(scope="module")
def rows():
    return tiny_rows(placement_loss)


@pytest.fixture(scope="module")
def record(rows):
    return tiny_record("placement_loss", rows, SEEDS)


def test_rows(rows):
    assert rows_problem(list(rows[0]), rows) is None
    runs = select(rows, quantity="loss")
    assert len(runs) == 3 * (3 * 2 * 2 + 2 + 3 * 2)
    assert all(len(row["values"]) == 5 for row in runs)
    for blocks, layers in (("none", 0), ("frozen", 2), ("trained", 2)):
        assert {r["layers"] for r in select(runs, blocks=blocks)} == {layers}


def test_medium_is_medium():
    size = placement_loss.SIZES["medium"]
    assert size["d"] >= 64 and len(placement_loss.SEEDS) >= 3
    assert size["steps"] * size["batch"] * size["context"] >= 1.5e6
    seeds = [step.cell.get("seed") for step in placement_loss.measure("medium")[:-1]]
    assert seeds == sorted(seeds)  # whole seeds first


def test_a_run_is_a_plain_loop(rows):
    model, kept = placement_loss.without("post", "trained", TINY, 1)
    adam = torch.optim.Adam(kept, 1e-2)
    generator = torch.Generator().manual_seed(1)
    losses = [placement_loss.evaluate(model, TINY)]
    for step in range(8):
        adam.param_groups[0]["lr"] = 1e-2 * (8 - step) / 8
        text = sample(corpus()[0], TINY["batch"], TINY["context"], generator)
        adam.zero_grad()
        loss_of(model, text).backward()
        adam.step()
        if step % 2:
            losses.append(placement_loss.evaluate(model, TINY))
    wanted = dict(placement="post", blocks="trained", learning_rate=1e-2, seed=1)
    (row,) = select(rows, warm_up=0.0, **wanted)
    assert row["values"] == pytest.approx(losses, rel=1e-5)


@pytest.mark.parametrize("blocks", placement_loss.BLOCKS)
def test_controls_train_what_they_say(blocks):
    model, kept = placement_loss.without("pre", blocks, TINY, 0)
    names = {n for n, p in model.named_parameters() if any(p is k for k in kept)}
    assert {"embedding.weight", "head.weight", "norm.weight"} <= names
    assert any(n.startswith("blocks.") for n in names) == (blocks == "trained")
    assert len(model.blocks) == (0 if blocks == "none" else 4)


def test_steps_repeat_exactly():
    steps = placement_loss.measure("tiny")
    assert steps[0].run() == steps[0].run()
    assert len({repr(step.cell) for step in steps}) == len(steps)


def test_facts_and_words(record):
    check_facts_and_words(placement_loss, record)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    (axis,) = draw(placement_loss, record, lang).axes
    assert len(axis.lines) == 6 + 12 + 1
