"""The race of stacked runs against a loop: the same work, honestly counted."""

import contextlib

import torch
from torch import nn

from scripts.measure import batching


def loss(model, x, y):
    return (model(x) - y).square().mean()


def test_both_sides_do_the_same_step(monkeypatch):
    """The racers are caught; one step of each gives the same weights."""
    generator = torch.Generator().manual_seed(0)
    models = [nn.Linear(3, 2) for _ in range(4)]
    x = torch.randn(4, 5, 3, generator=generator)
    y = torch.randn(4, 5, 2, generator=generator)
    start = [model.weight.detach().clone() for model in models]
    held = {}

    def caught(racers, rounds):
        held.update(racers)
        raise KeyboardInterrupt

    monkeypatch.setattr("scripts.measure.timing.time_together", caught)
    with contextlib.suppress(KeyboardInterrupt):
        batching.race(models, loss, (x, y))
    (stacked,) = [
        cell.cell_contents
        for cell in held["together"].__closure__
        if type(cell.cell_contents).__name__ == "Together"
    ]
    held["one_by_one"]()
    held["together"]()
    for run, model in enumerate(models):
        assert not torch.equal(start[run], model.weight)
        assert torch.allclose(stacked.parameters["weight"][run], model.weight)


def test_a_sample_a_round():
    models = [nn.Linear(3, 2) for _ in range(2)]
    data = torch.randn(2, 5, 3), torch.randn(2, 5, 2)
    one_by_one, together = batching.race(models, loss, data, rounds=3)
    assert len(one_by_one) == len(together) == 3
    assert min(one_by_one + together) > 0
