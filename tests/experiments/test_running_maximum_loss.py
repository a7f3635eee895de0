"""The task, what is seen inside a run, and facts that say what the rows say."""

from dataclasses import replace

import pytest
import torch

from scripts.experiments import running_maximum_loss as experiment
from tests.experiment_checks import draw, plain_step, select

TINY = experiment.SIZES["tiny"]


def test_rows(rows):
    runs = 2 * 5 * (2 * 4 + 1)  # rates, seeds; cells x arms, and the bare model
    assert len(select(rows, quantity="held_out")) == runs
    frames = select(rows, quantity="gradient")
    assert {row["depth"] for row in frames} == {0, 1, 2}
    assert len(frames) == 2 * 5 * 3 and {len(row["values"]) for row in frames} == {3}


def test_the_target_is_the_largest_so_far():
    """A model that knows it has a loss of zero; one that copies its input has not."""
    tokens = torch.tensor([[3, 1, 7, 7, 2]])

    def knows(tokens, by=100.0):
        so_far = [[max(row[: i + 1]) for i in range(5)] for row in tokens.tolist()]
        return by * torch.nn.functional.one_hot(torch.tensor(so_far), 32)

    def copies(tokens):
        return 100.0 * torch.nn.functional.one_hot(tokens, 32)

    assert experiment.loss_of(knows, tokens) < 1e-6
    assert experiment.loss_of(copies, tokens) == pytest.approx(2 * 100 / 5)


@pytest.mark.parametrize("arm", experiment.ARMS)
def test_inside_is_autograds_own(arm):
    """Held against hooks on the blocks, in float64."""
    model = experiment.fresh(arm, 2, 8, 0).double()
    tokens = experiment.held_out(TINY)
    streams = []
    for module in (model.embedding, model.blocks[1], model.blocks[3]):
        module.register_forward_hook(
            lambda m, i, out: streams.append(out) or out.retain_grad()
        )
    experiment.loss_of(model, tokens).backward()
    sizes, cosines = experiment.inside(model, tokens)
    for stream, size, cosine in zip(streams[:3], sizes, cosines, strict=True):
        assert size == pytest.approx(stream.grad.square().mean().sqrt().item())
        pairs = torch.nn.functional.cosine_similarity(
            stream[:, :, None], stream[:, None], dim=-1
        )
        n = stream.shape[1]
        apart = (pairs.sum((1, 2)) - n) / (n * (n - 1))
        assert cosine == pytest.approx(apart.mean().item())


@pytest.mark.parametrize("arm", ["frozen_pre", "frozen_post"])
def test_frozen_blocks_are_not_trained(arm):
    model = experiment.fresh(arm, 2, 8, 0)
    trained = {name.partition(".")[0] for name, _ in model.named_parameters()}
    assert "blocks" not in trained and {"embedding", "head"} <= trained
    twin = experiment.fresh(arm.removeprefix("frozen_"), 2, 8, 0)
    tokens = experiment.held_out(TINY)
    assert torch.equal(model(tokens), twin(tokens))


def test_a_run_of_the_stack_is_a_run_alone(rows):
    """Held against torch's own Adam in a plain loop."""
    rate, seed = 1e-2, 3
    model = experiment.fresh("post", 2, 8, seed)
    generator = torch.Generator().manual_seed(1000 + seed)
    adam = torch.optim.Adam(model.parameters(), rate)
    for step in range(TINY["steps"]):
        tokens = experiment.sequences(experiment.BATCH, generator)
        loss = experiment.loss_of(model, tokens)
        plain_step(adam, loss, rate * (1 - step / TINY["steps"]))
    chosen = {"arm": "post", "layers": 2, "rate": rate, "seed": seed}
    (found,) = select(rows, quantity="held_out", **chosen)
    wanted = experiment.loss_of(model, experiment.held_out(TINY)).item()
    assert found["values"][-1] == pytest.approx(wanted, rel=2e-4)


def test_a_diverged_run_is_infinite(record):
    def lost(row):
        where = row["quantity"], row["arm"], row["rate"]
        return where == ("held_out", "post", 1e-2)

    rows = [
        {**row, "values": [*row["values"][:-1], None]} if lost(row) else row
        for row in record.rows
    ]
    damaged = replace(record, rows=rows)
    facts = experiment.facts(damaged)
    assert (
        facts["post_2_8_best"] == facts["post_2_8_003"] != facts["post_2_8_01"] == "∞"
    )


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    figure = draw(experiment, record, lang)
    assert len(figure.axes) == 4
    assert len(figure.axes[0].lines) == len(experiment.SEEDS) + 1
