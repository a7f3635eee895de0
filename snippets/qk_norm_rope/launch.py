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
from snippets.triton_rms_norm.backward import sum_partials
from snippets.triton_rms_norm.launch import TILE, programs


def tile(half: int) -> dict[str, int]:
    """ROWS and COLUMNS of a kernel that holds both halves of a head."""
    columns = triton.next_power_of_2(half)
    return {"ROWS": max(1, TILE // 2 // columns), "COLUMNS": columns}


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
    dgain = torch.zeros_like(gain)
    if rows:
        shape = tile(width // 2)
        count = min(programs(x.device), triton.cdiv(rows, shape["ROWS"]))
        partial = gain.new_empty((count, width), dtype=torch.float32)
        qk_norm_rope_backward[(count,)](
            dy.contiguous(), x, gain, cos, sin, rstd, dx, partial, rows, time,
            *head_layout(x), width // 2, **shape,
        )  # fmt: skip
        grid = (triton.cdiv(width, 256),)
        sum_partials[grid](partial, dgain, count, width, 256)
    return dx, dgain


# --8<-- [end:backward]
