"""EncoderLayer: with silent branches the stream must pass untouched."""

import pytest
import torch
from torch import nn

from snippets.spot_the_bug.encoder_layer import EncoderLayer
from tests.snippets.spot_the_bug.repair import (
    close,
    expect,
    numbers,
    repaired,
    with_parameters,
)

LISTING = EncoderLayer
BUG = """x = self.norm2(x)
return x + self.feed_forward(x)"""
FIX = "return x + self.feed_forward(self.norm2(x))"
JUDGED = repaired(LISTING, BUG, FIX)


class Silent(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)


def check_silent_branches(kind):
    layer = with_parameters(kind(Silent(), Silent(), 8))
    x = numbers((2, 3, 8), offset=2.0, dtype=torch.float32)
    close("the stream", layer(x), x, 1e-6, case="branches that return zeros")


def check_by_hand(kind):
    layer = with_parameters(kind(nn.Tanh(), nn.Sigmoid(), 8))
    x = numbers((2, 3, 8), dtype=torch.float32)
    h = x + torch.tanh(layer.norm1(x))
    wanted = h + torch.sigmoid(layer.norm2(h))
    close("y", layer(x), wanted, 1e-5, case="tanh and sigmoid as branches")


CHECKS = [check_silent_branches, check_by_hand]


def usual(kind):
    torch.manual_seed(0)
    layer = kind(nn.Linear(8, 8), nn.Linear(8, 8), 8)
    x = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0))
    y = layer(x)
    y.square().sum().backward()
    expect(y.shape == x.shape, "randn", f"y is {tuple(y.shape)}")
    good = all(bool(p.grad.isfinite().all()) for p in layer.parameters())
    expect(good, "randn", "a gradient is missing or not finite")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
