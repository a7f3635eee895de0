"""The first step of Adam and a little noise, as the page shows them."""

import copy

import pytest
import torch

from snippets.pre_norm_vs_post_norm.trial import fresh, next_token_loss, random_text
from snippets.warm_up.first_step import first_adam_step, noise_shift
from tests.snippets.pre_norm_vs_post_norm.float64 import close


def test_first_adam_step_is_adam():
    text = random_text(0)
    model = fresh("Post-Norm", 2, 0)
    twin = copy.deepcopy(model)
    before = next_token_loss(twin, text)
    before.backward()
    torch.optim.Adam(twin.parameters(), lr=1e-3).step()
    change = first_adam_step(model, text)
    wanted = (next_token_loss(twin, text) - before).item()
    assert change == pytest.approx(wanted)
    for one, two in zip(model.parameters(), twin.parameters(), strict=True):
        close(one, two.detach(), 1e-9)


def test_noise_is_small_and_moves_post_norm_more():
    def moved(name, layers):
        shifts = [
            noise_shift(fresh(name, layers, s), random_text(s), s) for s in range(5)
        ]
        return sorted(shifts)[2]

    assert moved("Post-Norm", 24) > 1.4 * moved("Pre-Norm with final norm", 24)


def test_noise_is_one_per_cent_of_the_branches_and_is_taken_back():
    model, text = fresh("Post-Norm", 2, 0), random_text(0)
    twin = copy.deepcopy(model)
    shift = noise_shift(model, text, 3)
    for one, two in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(one, two)
    generator = torch.Generator().manual_seed(2003)
    before = twin(text)
    with torch.no_grad():
        for block in twin.blocks:
            for linear in (block.sublayer.reader, block.sublayer.writer):
                noise = torch.empty_like(linear.weight).normal_(generator=generator)
                linear.weight.add_(0.01 * linear.weight.std() * noise)
    wanted = 100 * (twin(text) - before).norm() / before.norm()
    assert shift == pytest.approx(wanted.item())
