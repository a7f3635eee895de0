"""A run of the plain loop is the same run in a stack; frozen parts do not move."""

import pytest
import torch

from scripts.measure import single, together
from scripts.measure.corpus import loss_of
from snippets.pre_norm_vs_post_norm.decoder import Decoder, initialize

STEPS, RATE = 20, 1e-2


def model():
    return initialize(Decoder(8, 2, 2, 256).double(), 3)


def texts():
    generator = torch.Generator().manual_seed(0)
    return torch.randint(256, (STEPS, 2, 9), generator=generator)


def run(trained, loss=loss_of, **settings):
    draws = iter(texts())
    return single.train(trained, loss, lambda: next(draws), STEPS, RATE, **settings)


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_a_run_is_that_of_a_stack(decay):
    trained, stacked = model(), together.Together([model()])
    assert run(trained, weight_decay=decay) == STEPS
    together.train(
        stacked,
        loss_of,
        lambda step: (texts()[None, step],),
        STEPS,
        RATE,
        schedule=together.warm_up(STEPS, 2),
        most=1.0,
        betas=(0.9, 0.95),
        weight_decay=decay,
        decays=lambda name: name.endswith("weight"),
    )
    for name, parameter in trained.named_parameters():
        assert torch.allclose(stacked.parameters[name][0], parameter, atol=1e-9), name


def test_what_is_frozen_stays():
    trained, drawn = model(), model()
    single.freeze(trained.blocks)
    run(trained, weight_decay=0.1)
    moved = [
        name
        for (name, one), other in zip(
            trained.named_parameters(), drawn.parameters(), strict=True
        )
        if not torch.equal(one, other)
    ]
    assert moved == ["embedding.weight", "norm.gain", "head.weight"]


def test_looks_and_what_follows_a_step():
    seen, after = [], []
    run(model(), looks=(0, 3, STEPS), seen=seen.append, after=lambda: after.append(1))
    assert seen == [0, 3, STEPS] and len(after) == STEPS
    assert single.moments(100)[:3] == [0, 1, 2] and single.moments(100)[-1] == 100


def test_a_loss_that_is_not_finite_ends_the_run():
    losses = iter([1.0, 1.0, float("nan")])

    def loss(trained, text):
        return loss_of(trained, text) * next(losses)

    seen = []
    assert run(model(), loss, looks=range(STEPS + 1), seen=seen.append) == 2
    assert seen == [0, 1, 2]
