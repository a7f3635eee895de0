"""Decoder: what reaches the head?"""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.spot_the_bug.decoder import Decoder
from tests.snippets.spot_the_bug.repair import close, expect, repaired

LISTING = Decoder
BUG = "return self.head(x)"
FIX = "return self.head(self.norm(x))"
JUDGED = repaired(LISTING, BUG, FIX)
IDS = torch.tensor([[1, 4, 2], [0, 3, 3]])


class Layer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        return x + self.size * torch.ones(x.shape[-1]).cumsum(0)


def _model(kind, size, layers=3):
    torch.manual_seed(0)
    return kind(7, 8, [Layer(size) for _ in range(layers)])


def check_every_parameter_learns(kind):
    model = _model(kind, 1.0)
    F.cross_entropy(model(IDS).flatten(0, 1), IDS.flatten()).backward()
    for name, parameter in model.named_parameters():
        expect(parameter.grad is not None, "one training step", f"{name} gets nothing")


def check_stream_grows(kind):
    found = [_model(kind, size)(IDS) for size in (1e4, 2e4)]
    case = "layers that write 1e4, or twice that"
    close("a logit", found[1], found[0], 1e-2, case=case)


CHECKS = [check_every_parameter_learns, check_stream_grows]


def usual(kind):
    model = _model(kind, 0.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        loss = F.cross_entropy(model(IDS).flatten(0, 1), IDS.flatten())
        optimizer.zero_grad(), loss.backward(), optimizer.step()
        losses.append(float(loss.detach()))
    expect(model(IDS).shape == (2, 3, 7), "ids (2, 3)", "logits of another shape")
    expect(losses[-1] < losses[0], "5 steps of SGD", "the loss does not fall")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
