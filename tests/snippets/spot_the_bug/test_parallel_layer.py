"""ParallelLayer has no fault: by hand, and what a wrong repair breaks."""

import pytest
import torch
from torch import nn

from snippets.spot_the_bug.parallel_layer import ParallelLayer
from tests.snippets.coding.cases import (
    close,
    numbers,
    unchanged,
    with_parameters,
)

LISTING = JUDGED = ParallelLayer


class Silent(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)


def check_silent_branches(kind):
    layer = with_parameters(kind(Silent(), Silent(), 8))
    x = numbers((2, 3, 8), offset=2.0, dtype=torch.float32)
    close("the stream", layer(x), x, 1e-6, case="branches that return zeros")


def check_by_hand(kind):
    layer = with_parameters(kind(nn.Tanh(), nn.Sigmoid(), 7))
    x = numbers((2, 3, 7), offset=1.0, dtype=torch.float32)
    h = layer.norm(x)
    wanted, case = x + torch.tanh(h) + torch.sigmoid(h), "tanh and sigmoid as branches"
    with unchanged(case, x):
        y = layer(x)
    close("y", y, wanted, 1e-5, case=case)


CHECKS = [check_silent_branches, check_by_hand]


class OneAfterTheOther(ParallelLayer):
    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.feed_forward(self.norm(x))


class SecondBranchWithoutNorm(ParallelLayer):
    def forward(self, x):
        return x + self.attention(self.norm(x)) + self.feed_forward(x)


class FeedForwardOfAttention(ParallelLayer):
    def forward(self, x):
        return x + self.feed_forward(self.attention(self.norm(x)))


class StreamIsNormalized(ParallelLayer):
    def forward(self, x):
        x = self.norm(x)
        return x + self.attention(x) + self.feed_forward(x)


class NormOnTheOutput(ParallelLayer):
    def forward(self, x):
        return x + self.norm(self.attention(x) + self.feed_forward(x))


class AddsInPlace(ParallelLayer):
    def forward(self, x):
        h = self.norm(x)
        x += self.attention(h) + self.feed_forward(h)
        return x


VARIANTS = [
    OneAfterTheOther,
    SecondBranchWithoutNorm,
    FeedForwardOfAttention,
    StreamIsNormalized,
    NormOnTheOutput,
    AddsInPlace,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
