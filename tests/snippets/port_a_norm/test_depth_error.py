"""What the page says of rounding over depth, for seeds that it does not show."""

import copy

import pytest
import torch
from torch import nn

from snippets.port_a_norm.depth_error import depth_errors, random_blocks
from snippets.transformer_block.decoder import Sizes

SIZES = Sizes(blocks=24, d=32, heads=2, kv_heads=1, width=16, hidden=48)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_rounding_grows_slowly_and_a_fault_stands_out_alone(dtype):
    torch.manual_seed(1)
    original = random_blocks(SIZES).to(dtype).double()
    port = copy.deepcopy(original).to(dtype)
    x = torch.randn(2, 16, 32).to(dtype)
    right = depth_errors(original, port, x)
    spacing = torch.finfo(dtype).eps
    assert max(right["alone"]) < (4 if dtype == torch.float32 else 1) * spacing
    assert 2 < right["stream"][-1] / right["stream"][0] < 24 / 2
    assert right["alone"][-1] < right["alone"][0]
    port[7].ffn_norm.gain.data.mul_(1.05)
    wrong = depth_errors(original, port, x)
    assert wrong["alone"][7] > 4 * right["alone"][7]
    others = [n for n in range(24) if n != 7]
    assert [wrong["alone"][n] for n in others] == [right["alone"][n] for n in others]
    ratio = wrong["stream"][-1] / right["stream"][-1]
    assert ratio > 1e4 if dtype == torch.float32 else ratio > 1
    if dtype == torch.bfloat16:
        assert ratio < 3  # at the end it looks like rounding


def test_alone_reads_the_original_and_stream_the_port():
    halves = nn.ModuleList([nn.Linear(4, 4, bias=False).double() for _ in range(2)])
    ours = copy.deepcopy(halves)
    ours[0].weight.data.mul_(2)
    found = depth_errors(halves, ours, torch.randn(3, 4, dtype=torch.float64))
    assert found["alone"] == pytest.approx([1, 0])
    assert found["stream"] == pytest.approx([1, 1])
