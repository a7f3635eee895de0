# --8<-- [start:forward]
import torch
import triton
from torch import Tensor

from snippets.fused_residual.kernels import (
    add_rms_norm_backward,
    add_rms_norm_forward,
)
from snippets.triton_rms_norm.launch import (
    WHOLE_BACKWARD,
    WHOLE_FORWARD,
    backward,
    forward,
    programs,
    summed,
    tile,
    walk,
)
from snippets.triton_rms_norm.rows import row_layout


def add_forward(
    x: Tensor, branch: Tensor, gain: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """stream and y, in x's shape and dtype, and rstd, (rows,) in float32."""
    width = x.shape[-1]
    if width > WHOLE_FORWARD:  # two kernels: 3R 2W
        stream = x.contiguous() + branch.contiguous()
        return stream, *forward(stream, gain, eps)
    (rows, *left), (_, *right) = row_layout(x), row_layout(branch)
    stream, y = (
        torch.empty(x.shape, dtype=x.dtype, device=x.device) for _ in range(2)
    )
    rstd = torch.empty(rows, dtype=torch.float32, device=x.device)
    if rows:
        shape = tile(width)
        add_rms_norm_forward[(triton.cdiv(rows, shape["ROWS"]),)](
            x, branch, gain, stream, y, rstd, rows, left[1], right[1],
            min(left[-1], right[-1]), eps, width, **shape,
        )  # fmt: skip
    return stream, y, rstd


# --8<-- [end:forward]


# --8<-- [start:backward]
def add_backward(
    dy: Tensor, dstream: Tensor, stream: Tensor, gain: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradient of x, which is that of branch, and the gain's."""
    rows, width = len(rstd), stream.shape[-1]
    dy, dstream = dy.contiguous(), dstream.contiguous()
    if width > WHOLE_BACKWARD:
        return backward(dy, stream, gain, rstd, dstream)
    dx = torch.empty_like(stream)
    if not rows:
        return dx, torch.zeros_like(gain)
    shape = walk(width, stream.element_size(), tensors=3)
    most = programs(stream.device, shape["num_warps"])
    count = min(most, triton.cdiv(rows, shape["ROWS"]))
    partial = gain.new_empty((1, count, width), dtype=torch.float32)
    add_rms_norm_backward[(count,)](
        dy, dstream, stream, gain, rstd, dx, partial, rows, width, **shape
    )
    (dgain,) = summed(partial, gain)
    return dx, dgain


# --8<-- [end:backward]
