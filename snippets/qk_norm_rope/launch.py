# --8<-- [start:tile]
from math import prod

import torch
import triton
from torch import Tensor

from snippets.qk_norm_rope.heads import head_layout
from snippets.qk_norm_rope.kernels import (
    qk_norm_rope_backward,
    qk_norm_rope_forward,
)
from snippets.triton_rms_norm.launch import TILE, programs, stages, summed


def tile(half: int) -> dict[str, int]:
    """ROWS and COLUMNS of a kernel that holds both halves of a head."""
    columns = triton.next_power_of_2(half)
    return {"ROWS": max(1, TILE // 2 // columns), "COLUMNS": columns}


def walk(half: int, size: int) -> dict[str, int]:
    """tile of the kernel that walks over rows, size bytes an element."""
    shape = tile(half)
    loaded = 2 * 4 + 4 * size  # cos and sin, two halves of x and of dy
    loaded *= shape["ROWS"] * shape["COLUMNS"]
    return {**shape, "num_warps": 8, "STAGES": stages(loaded)}


# --8<-- [end:tile]


# --8<-- [start:forward]
def forward(
    x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """y, in x's shape and dtype, and rstd, (rows,) in float32."""
    time, half = x.shape[1], x.shape[-1] // 2
    rows = prod(x.shape[:-1])
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rstd = torch.empty(rows, dtype=torch.float32, device=x.device)
    if rows:
        shape = tile(half)
        qk_norm_rope_forward[(triton.cdiv(rows, shape["ROWS"]),)](
            x, gain, cos, sin, y, rstd, rows, time, *head_layout(x), eps, half,
            **shape,
        )  # fmt: skip
    return y, rstd


# --8<-- [end:forward]


# --8<-- [start:backward]
def backward(
    dy: Tensor, x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    """dx, in x's shape and dtype, and the gradient of the gain, in its own."""
    rows, (time, width) = len(rstd), (x.shape[1], x.shape[-1])
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not rows:
        return dx, torch.zeros_like(gain)
    shape = walk(width // 2, x.element_size())
    count = min(programs(x.device, 8), triton.cdiv(rows, shape["ROWS"]))
    partial = gain.new_empty((1, count, width), dtype=torch.float32)
    qk_norm_rope_backward[(count,)](
        dy.contiguous(), x, gain, cos, sin, rstd, dx, partial, rows, time,
        *head_layout(x), width // 2, **shape,
    )  # fmt: skip
    (dgain,) = summed(partial, gain)
    return dx, dgain


# --8<-- [end:backward]
