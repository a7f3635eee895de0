"""What the page counts is what the operator takes and returns."""

import torch
from torch._subclasses import FakeTensorMode

from snippets.qk_norm_rope import traffic
from snippets.qk_norm_rope.heads import head_layout
from snippets.qk_norm_rope.operator import (
    qk_norm_rope_backward_op,
    qk_norm_rope_op,
)


def inputs(heads: int) -> list[torch.Tensor]:
    """x, gain, cos and sin of the page's shapes, without memory behind them."""
    shape = (traffic.BATCH, traffic.TIME, heads, traffic.WIDTH)
    table = (traffic.TIME, traffic.WIDTH // 2)
    return [
        torch.empty(shape, dtype=torch.bfloat16),
        torch.empty(traffic.WIDTH, dtype=torch.bfloat16),
        torch.empty(table),
        torch.empty(table),
    ]


def size(*tensors: torch.Tensor) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def test_bytes_are_those_of_inputs_and_outputs():
    forward = backward = gains = 0
    with FakeTensorMode():
        for heads in (traffic.HEADS, traffic.KEYS):
            x, gain, cos, sin = inputs(heads)
            y, rstd = qk_norm_rope_op(x, gain, cos, sin, 1e-6)
            forward += size(x, cos, sin, y, rstd)
            dx, _ = qk_norm_rope_backward_op(y, x, gain, cos, sin, rstd)
            backward += size(y, x, cos, sin, rstd, dx)
            gains += size(gain)
    assert forward == traffic.BOTH * traffic.ELEMENTS
    assert backward == traffic.BACKWARD["one kernel"] * traffic.ELEMENTS
    assert gains < 1e-5 * forward


def test_a_reshape_copies_where_the_kernel_does_not():
    packed = torch.empty(2, 5, 48 * 16)
    q = packed[..., : 32 * 16].unflatten(-1, (32, 16))
    assert q.reshape(-1, 16).data_ptr() != q.data_ptr()
    heads, token_stride, head_stride, align = head_layout(q)
    assert (heads, token_stride, head_stride, align) == (32, 48 * 16, 16, 16)
    place = (1 * 5 + 4) * token_stride + 2 * head_stride
    assert q[1, 4, 2].storage_offset() == place
