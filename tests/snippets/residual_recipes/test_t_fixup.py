"""T-Fixup's factors and what they touch, against the authors' code."""

import pytest
import torch
from torch import nn

from snippets.deepnorm.block import Attention, FeedForward, initialize
from snippets.residual_recipes.t_fixup import t_fixup, t_fixup_factor

LAYERS = (1, 6, 12, 200)


def check_factor(function):
    for layers in LAYERS:
        assert function("encoder", layers) == pytest.approx(
            0.67 * (layers) ** (-1.0 / 4.0)
        )
        assert function("decoder", layers) == pytest.approx(
            (9 * layers) ** (-1.0 / 4.0)
        )


def exponent_of_one_half(stack, layers):
    return t_fixup_factor(stack, layers) ** 2


def stacks_swapped(stack, layers):
    return t_fixup_factor("decoder" if stack == "encoder" else "encoder", layers)


def constant_inside_the_root(stack, layers):
    if stack == "encoder":
        return (0.67 * layers) ** -0.25
    return t_fixup_factor(stack, layers)


def deepnorm_beta_for_both(stack, layers):
    return (8 * layers) ** -0.25


def sublayers_counted(stack, layers):
    return t_fixup_factor(stack, (2 if stack == "encoder" else 3) * layers)


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


def _scales(names, power=1.0):
    @torch.no_grad()
    def function(branch, factor):
        for name, layer in branch.named_modules():
            if name.rpartition(".")[2] in names:
                layer.weight.mul_(factor**power)

    return function


ALL = ("query", "key", "value", "output", "up", "down")
queries_and_keys_too = _scales(ALL)
queries_and_keys_only = _scales(ALL[:2])
value_forgotten = _scales(ALL[3:])
writers_only = _scales(("output", "down"))
factor_squared = _scales(ALL[2:], 2.0)

WRONG_FACTORS = [
    exponent_of_one_half,
    stacks_swapped,
    constant_inside_the_root,
    deepnorm_beta_for_both,
    sublayers_counted,
]
WRONG = [
    queries_and_keys_too,
    queries_and_keys_only,
    value_forgotten,
    writers_only,
    factor_squared,
]
for _name, _variant in list(globals().items()):
    if any(_variant is each for each in WRONG):
        _variant.__name__ = _name


def test_right():
    check_factor(t_fixup_factor)
    check_what_is_scaled(t_fixup)


@pytest.mark.parametrize("variant", WRONG_FACTORS, ids=lambda v: v.__name__)
def test_known_wrong_factor(variant, known_wrong):
    known_wrong.rejected_by([check_factor], variant)


@pytest.mark.parametrize("variant", WRONG, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by([check_what_is_scaled], variant)


def test_stack_is_named():
    with pytest.raises(ValueError, match="neither"):
        t_fixup_factor("both", 6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_dtype_stays(dtype):
    branch = FeedForward(8).to(dtype)
    t_fixup(branch, 0.5)
    assert branch.down.weight.dtype == dtype
