"""parameter_groups: a step without gradients shows who decays."""

import pytest
import torch
from torch import nn

from snippets.spot_the_bug.parameter_groups import parameter_groups
from tests.snippets.spot_the_bug.repair import expect, repaired

LISTING = parameter_groups
BUG = 'if name.endswith("bias"):'
FIX = "if parameter.ndim < 2:"
JUDGED = repaired(LISTING, BUG, FIX)


def _model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.RMSNorm(4))


def check_gains_keep_their_size(groups):
    model = _model()
    optimizer = torch.optim.AdamW(groups(model, 0.1), lr=0.1)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        moved = not torch.equal(parameter.detach(), before[name])
        words = f"{name} {'moved' if moved else 'did not decay'}"
        expect(moved == (parameter.ndim > 1), "a step with zero gradients", words)


CHECKS = [check_gains_keep_their_size]


def usual(groups):
    model = _model()
    found = groups(model, 0.1)
    counts = [len(group["params"]) for group in found]
    case = "a model of 5 parameters"
    expect(sum(counts) == len(list(model.parameters())), case, f"{sum(counts)} grouped")
    expect([g["weight_decay"] for g in found] == [0.1, 0.0], case, "other decays")
    biases = [p for n, p in model.named_parameters() if n.endswith("bias")]
    kept = {id(p) for p in found[1]["params"]}
    expect(all(id(p) in kept for p in biases), case, "a bias decays")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
