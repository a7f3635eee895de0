"""Views have the numbers of what they are made of, and are felt where strides count."""

import pytest
import torch
from torch import nn

from tests.same_results import of_module, on_views, views

X = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(0))


def test_views():
    found = dict(views(X))
    assert len(found) == 3 and not any(v.is_contiguous() for v in found.values())
    broadcast = found.pop("broadcast")
    assert torch.equal(broadcast, X[:1].expand(3, 4, 5))
    assert all(torch.equal(view, X) for view in found.values())


def in_order(x):
    """Reads memory as if x were contiguous."""
    return torch.as_strided(x, x.shape, torch.empty(x.shape).stride()) * 2


def test_only_what_minds_strides_passes():
    check = on_views(X, torch.ones(5), 1e-6, call=lambda f, x, gain, _: f(x) * gain)
    check(lambda x: 2 * x)
    check(lambda x: x - x.mean(dim=1, keepdim=True))
    with pytest.raises(AssertionError, match="input 1 is a view, sliced"):
        check(in_order)


class Quiet(nn.Linear):
    def forward(self, x):
        return super().forward(x) if self.training else x


def test_a_mode_that_counts():
    for check in of_module(lambda kind: kind(5, 5), X):
        check(nn.Linear)
    views_of, evaluation = of_module(lambda kind: kind(5, 5), X)
    views_of(Quiet)
    with pytest.raises(AssertionError, match="mode"):
        evaluation(Quiet)
