"""RunningNorm against nn.BatchNorm1d, in training and after it."""

import pytest
import torch
from torch import nn

from snippets.spot_the_bug.running_norm import RunningNorm
from tests.snippets.spot_the_bug.repair import (
    close,
    numbers,
    repaired,
    with_parameters,
)

LISTING = RunningNorm
BUG = "self.running_var.lerp_(var, self.momentum)"
FIX = """unbiased = var * len(x) / (len(x) - 1)
self.running_var.lerp_(unbiased, self.momentum)"""
JUDGED = repaired(LISTING, BUG, FIX)


def _pair(kind):
    return with_parameters(kind(4)), with_parameters(nn.BatchNorm1d(4))


def check_evaluation_after_training(kind):
    ours, torch_norm = _pair(kind)
    for seed in range(30):
        x = numbers((4, 4), seed=seed, offset=1.0, dtype=torch.float32)
        ours(x), torch_norm(x)
    ours.eval(), torch_norm.eval()
    case = "evaluation, after 30 batches of 4"
    close("y", ours(x), torch_norm(x), 1e-4, case=case)


CHECKS = [check_evaluation_after_training]


def usual(kind):
    ours, torch_norm = _pair(kind)
    x = numbers((4, 4), dtype=torch.float32)
    close("y", ours(x), torch_norm(x), 1e-4, case="training")
    close("the mean", ours.running_mean, torch_norm.running_mean, 1e-4)
    ours, torch_norm = _pair(kind)
    ours.eval(), torch_norm.eval()
    close("y", ours(x), torch_norm(x), 1e-4, case="a fresh norm in evaluation")


@pytest.mark.parametrize("check", [*CHECKS, usual], ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", [LISTING], ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_usual_test_is_blind():
    usual(LISTING)
