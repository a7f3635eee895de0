"""accuracy: an evaluation must neither use the batch nor change the model."""

import pytest
import torch
from torch import nn

from snippets.spot_the_bug.evaluation import accuracy
from tests.snippets.spot_the_bug.repair import expect, numbers, repaired

LISTING = accuracy
BUG = "right = total = 0"
FIX = """model.eval()
right = total = 0"""
JUDGED = repaired(LISTING, BUG, FIX)


def _model(norm):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), norm, nn.ReLU(), nn.Linear(8, 3))


def _data():
    x = numbers((24, 6), offset=1.0, dtype=torch.float32)
    return x, torch.arange(24) % 3


def check_model_unchanged(accuracy):
    model, (x, labels) = _model(nn.BatchNorm1d(8)), _data()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    accuracy(model, [(x, labels)])
    for name, each in model.state_dict().items():
        expect(torch.equal(each, before[name]), "after the evaluation", f"{name} moved")
    expect(model.training, "after the evaluation", "the model does not train")


def check_batch_size(accuracy):
    model, (x, labels) = _model(nn.BatchNorm1d(8)), _data()
    model(x)
    found = [
        accuracy(model, zip(x.split(n), labels.split(n), strict=True)) for n in (24, 2)
    ]
    case = "24 inputs at once, or two by two"
    expect(found[0] == found[1], case, f"{found[0]:.3f} and {found[1]:.3f}")


CHECKS = [check_model_unchanged, check_batch_size]


def usual(accuracy):
    model, (x, labels) = _model(nn.LayerNorm(8)), _data()
    wanted = (model(x).argmax(-1) == labels).double().mean()
    expect(accuracy(model, [(x, labels)]) == float(wanted), "LayerNorm", "wrong")
    expect(all(p.grad is None for p in model.parameters()), "LayerNorm", "a gradient")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
