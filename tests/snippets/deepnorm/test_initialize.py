"""Xavier normal: the standard deviation of every matrix, alone."""

import pytest
import torch
from torch import nn

from snippets.deepnorm.block import Attention, FeedForward, initialize
from tests.wrong import suite

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


test_right, test_known_wrong = suite(initialize, CHECKS)


def test_a_name_it_does_not_know():
    with pytest.raises(ValueError, match="gate"):
        initialize(nn.ModuleDict({"gate": nn.Linear(3, 3)}), 0.5)


def test_drawing_with_a_gain_is_multiplying_afterwards():
    torch.manual_seed(3)
    with_gain = nn.init.xavier_normal_(torch.empty(9, 5), 0.25)
    torch.manual_seed(3)
    assert torch.equal(with_gain, 0.25 * nn.init.xavier_normal_(torch.empty(9, 5)))
