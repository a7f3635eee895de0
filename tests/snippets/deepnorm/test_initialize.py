"""Xavier normal: the standard deviation of every matrix, alone."""

import pytest
import torch
from torch import nn

from snippets.deepnorm.block import Attention, FeedForward, initialize

D, BETA = 256, 0.2


def xavier(weight):
    return (2 / (weight.shape[0] + weight.shape[1])) ** 0.5


def drawn(function, beta=BETA):
    """All matrices of two branches, after function has drawn them."""
    torch.manual_seed(0)
    attention, feed_forward = Attention(D, 4), FeedForward(D)
    for branch in (attention, feed_forward):
        for parameter in branch.parameters():
            torch.nn.init.constant_(parameter, 7.0)  # what stood there before
        function(branch, beta)
    return {
        name: layer.weight.detach()
        for branch in (attention, feed_forward)
        for name, layer in branch.named_children()
    }


def check_standard_deviations(function):
    for beta in (BETA, 0.7, 1.3):
        for name, weight in drawn(function, beta).items():
            gain = 1.0 if name in ("query", "key") else beta
            std = float(weight.std(correction=0))
            assert abs(std / (gain * xavier(weight)) - 1) < 0.02, (name, std)


def check_normal(function):
    for name, weight in drawn(function).items():
        z = (weight / weight.std(correction=0)).double()
        assert abs(float(z.mean())) < 0.02, name
        assert abs(float(z.pow(4).mean()) - 3) < 0.15, name


def check_nested_names(function):
    attention = Attention(D, 4)
    function(nn.ModuleDict({"self": attention}), BETA)
    value, query = attention.value.weight.detach(), attention.query.weight.detach()
    ratio = float(value.std() / query.std())
    assert abs(ratio / BETA - 1) < 0.03, ratio


CHECKS = [check_standard_deviations, check_normal, check_nested_names]


def _with(gain_of):
    def function(branch, beta):
        for name, layer in branch.named_modules():
            if isinstance(layer, nn.Linear):
                nn.init.xavier_normal_(
                    layer.weight, gain_of(name.rpartition(".")[2], beta)
                )

    return function


def _scaled(name):
    return name not in ("query", "key")


beta_on_everything = _with(lambda name, beta: beta)
beta_on_nothing = _with(lambda name, beta: 1.0)
beta_on_queries_and_keys = _with(lambda name, beta: 1.0 if _scaled(name) else beta)
value_forgotten = _with(
    lambda name, beta: beta if _scaled(name) and name != "value" else 1.0
)
up_forgotten = _with(lambda name, beta: beta if _scaled(name) and name != "up" else 1.0)
only_the_last_matrix = _with(
    lambda name, beta: beta if name in ("output", "down") else 1.0
)
divided_by_beta = _with(lambda name, beta: 1 / beta if _scaled(name) else 1.0)
beta_squared = _with(lambda name, beta: beta**2 if _scaled(name) else 1.0)
root_of_beta = _with(lambda name, beta: beta**0.5 if _scaled(name) else 1.0)


def uniform_for_normal(branch, beta):
    initialize(branch, beta)
    for name, layer in branch.named_modules():
        if isinstance(layer, nn.Linear):
            gain = beta if _scaled(name.rpartition(".")[2]) else 1.0
            nn.init.xavier_uniform_(layer.weight, gain)


def kaiming_for_xavier(branch, beta):
    for name, layer in branch.named_modules():
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight)
            if _scaled(name.rpartition(".")[2]):
                layer.weight.data.mul_(beta)


def scales_what_stood_there(branch, beta):
    for name, layer in branch.named_modules():
        if isinstance(layer, nn.Linear) and _scaled(name.rpartition(".")[2]):
            layer.weight.data.mul_(beta)


def fused_fans(branch, beta):
    initialize(branch, beta)
    if hasattr(branch, "query"):
        fused = torch.empty(3 * D, D)
        nn.init.xavier_normal_(fused)
        fused[2 * D :] *= beta
        names = (branch.query, branch.key, branch.value)
        for layer, part in zip(names, fused.chunk(3), strict=True):
            layer.weight.data.copy_(part)


def looks_for_other_names(branch, beta):
    for name, layer in branch.named_modules():
        if isinstance(layer, nn.Linear):
            found = any(n in name for n in ("fc1", "fc2", "out_proj", "v_proj"))
            nn.init.xavier_normal_(layer.weight, beta if found else 1.0)


def top_level_names_only(branch, beta):
    for name, layer in branch.named_modules():
        if isinstance(layer, nn.Linear):
            scaled = name in ("value", "output", "up", "down")
            nn.init.xavier_normal_(layer.weight, beta if scaled else 1.0)


VARIANTS = [
    beta_on_everything,
    beta_on_nothing,
    beta_on_queries_and_keys,
    value_forgotten,
    up_forgotten,
    only_the_last_matrix,
    divided_by_beta,
    beta_squared,
    root_of_beta,
    uniform_for_normal,
    kaiming_for_xavier,
    scales_what_stood_there,
    fused_fans,
    looks_for_other_names,
    top_level_names_only,
]
for _name, _variant in list(globals().items()):
    if any(_variant is each for each in VARIANTS):
        _variant.__name__ = _name


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(initialize)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_a_name_it_does_not_know():
    with pytest.raises(ValueError, match="gate"):
        initialize(nn.ModuleDict({"gate": nn.Linear(3, 3)}), 0.5)


def test_drawing_with_a_gain_is_multiplying_afterwards():
    torch.manual_seed(3)
    with_gain = nn.init.xavier_normal_(torch.empty(9, 5), 0.25)
    torch.manual_seed(3)
    assert torch.equal(with_gain, 0.25 * nn.init.xavier_normal_(torch.empty(9, 5)))
