# --8<-- [start:forward]
import torch
import triton
from torch import Tensor

from snippets.triton_layer_norm.backward import (
    affine_gradients,
    layer_norm_backward,
    layer_norm_backward_wide,
)
from snippets.triton_layer_norm.forward import (
    layer_norm_forward,
    layer_norm_forward_wide,
)
from snippets.triton_rms_norm.forward import SINGLE
from snippets.triton_rms_norm.launch import (
    PIECE,
    WHOLE_BACKWARD,
    WHOLE_FORWARD,
    pairs,
    programs,
    summed,
    tile,
    walk,
    whole,
)
from snippets.triton_rms_norm.rows import row_layout


def forward(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """y, in x's shape and dtype; mean and rstd, (rows,) in float32."""
    rows, *layout = row_layout(x)
    width = x.shape[-1]
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    mean = torch.empty(rows, dtype=torch.float32, device=x.device)
    rstd = torch.empty_like(mean)
    if rows and not whole(width, x, gain):
        layer_norm_forward_wide[(rows,)](
            x, gain, bias, y, mean, rstd, *layout, eps, width, PIECE,
            num_warps=16,
        )  # fmt: skip
    elif rows:
        shape = tile(width)
        if SINGLE.value < width <= WHOLE_FORWARD and pairs(x, gain):
            shape |= {"num_warps": 16, "maxnreg": 64}  # two programs an SM
        grid = (triton.cdiv(rows, shape["ROWS"]),)
        layer_norm_forward[grid](
            x, gain, bias, y, mean, rstd, rows, *layout, eps, width, **shape
        )
    return y, mean, rstd


# --8<-- [end:forward]


# --8<-- [start:backward]
def backward(
    dy: Tensor, x: Tensor, gain: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """dx, as x; the gradients of gain and bias, in their dtype."""
    rows, *layout = row_layout(x)
    width = x.shape[-1]
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not rows:
        return dx, torch.zeros_like(gain), torch.zeros_like(gain)
    dy = dy.contiguous()
    shape = walk(width, x.element_size())
    if width > WHOLE_BACKWARD:
        count = max(1, programs(x.device, 8) * 1024 // width)
    else:
        most = programs(x.device, shape["num_warps"])
        count = min(most, triton.cdiv(rows, shape["ROWS"]))
    partial = gain.new_empty((2, count, width), dtype=torch.float32)
    if width > WHOLE_BACKWARD:
        layer_norm_backward_wide[(rows,)](
            dy, x, gain, mean, rstd, dx, *layout, width, PIECE,
            num_warps=16,
        )  # fmt: skip
        affine_gradients[(triton.cdiv(width, 1024), count)](
            dy, x, mean, rstd, partial, rows, *layout, width,
            ROWS=4, COLUMNS=1024, num_warps=8,
        )  # fmt: skip
    else:
        layer_norm_backward[(count,)](
            dy, x, gain, mean, rstd, dx, partial, rows, *layout, width,
            **shape,
        )  # fmt: skip
    return dx, *summed(partial, gain)


# --8<-- [end:backward]
