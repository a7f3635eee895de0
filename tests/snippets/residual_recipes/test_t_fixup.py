"""T-Fixup's factors and what they touch, against the authors' code."""

import pytest
import torch
from torch import nn

from snippets.deepnorm.block import Attention, FeedForward, initialize
from snippets.residual_recipes.t_fixup import t_fixup, t_fixup_factor
from tests.wrong import suite

LAYERS = (1, 6, 12, 200)


def check_factor(function):
    for layers in LAYERS:
        assert function("encoder", layers) == pytest.approx(
            0.67 * (layers) ** (-1.0 / 4.0)
        )
        assert function("decoder", layers) == pytest.approx(
            (9 * layers) ** (-1.0 / 4.0)
        )


def drawn():
    torch.manual_seed(0)
    branches = nn.ModuleList([Attention(16, 4), FeedForward(16)])
    initialize(branches, 1.0)
    return branches


def check_what_is_scaled(function):
    for factor in (0.2, 0.67):
        before, branches = drawn(), drawn()
        for branch in branches:
            function(branch, factor)
        for name, weight in branches.named_parameters():
            wanted = before.get_parameter(name).detach()
            if "query" not in name and "key" not in name:
                wanted = factor * wanted
            assert torch.allclose(weight.detach(), wanted, rtol=1e-6), name


test_factor, test_known_wrong_factor = suite(t_fixup_factor, [check_factor])


test_right, test_known_wrong = suite(t_fixup, [check_what_is_scaled])


def test_stack_is_named():
    with pytest.raises(ValueError, match="neither"):
        t_fixup_factor("both", 6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_dtype_stays(dtype):
    branch = FeedForward(8).to(dtype)
    t_fixup(branch, 0.5)
    assert branch.down.weight.dtype == dtype
