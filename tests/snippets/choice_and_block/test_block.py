"""The block is Pre-Norm, and a model of eight has seventeen norms."""

import pytest
import torch
from torch import nn
from torch.nn.functional import rms_norm

from snippets.choice_and_block.block import Block, model


def test_it_is_pre_norm():
    torch.manual_seed(0)
    seen, width = [], 6

    def branch(x):
        seen.append(x)
        return torch.full_like(x, 2.0)

    block = Block(width, None, None)
    block.attention = block.feed_forward = branch
    for norm in block.norms:
        nn.init.uniform_(norm.weight, 0.5, 1.5)
    x = 3 * torch.randn(4, width)
    assert torch.allclose(block(x), x + 4)
    for norm, read, stream in zip(block.norms, seen, (x, x + 2), strict=True):
        right = norm.weight * rms_norm(stream, (width,), eps=1e-5)
        assert torch.allclose(read, right, atol=1e-6)


@pytest.mark.parametrize(("a_block", "count"), [(2, 17), (4, 33)])
def test_norms_are_counted(a_block, count):
    assert 8 * a_block + 1 == count
    norms = sum(isinstance(part, nn.RMSNorm) for part in model.modules())
    assert a_block > 2 or norms == count


def test_the_answers_by_hand():
    x = torch.tensor([3.0, 4.0])
    y = rms_norm(x, (2,), eps=0)
    assert x.square().mean() == 12.5 and round(12.5**0.5, 2) == 3.54
    assert [round(v, 2) for v in y.tolist()] == [0.85, 1.13]
