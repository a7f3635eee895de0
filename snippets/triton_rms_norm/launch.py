# --8<-- [start:tile]
import torch
import triton
from torch import Tensor

from snippets.triton_rms_norm.backward import (
    AHEAD,
    gain_gradient,
    rms_norm_backward,
    rms_norm_backward_wide,
    sum_partials,
)
from snippets.triton_rms_norm.forward import (
    SINGLE,
    rms_norm_forward,
    rms_norm_forward_wide,
)
from snippets.triton_rms_norm.rows import row_layout

TILE = 4096  # elements that a program holds when rows are narrow
SHARED = 220_000  # bytes; a program on Hopper can have 232,448
WHOLE_FORWARD = 32_768  # the widest row that a program holds in float32
WHOLE_BACKWARD = 16_384  # less: x, dy and the gain's sum at once
PIECE = 8192  # columns at a time of wider rows


def tile(width: int) -> dict[str, int]:
    """ROWS, COLUMNS and num_warps of a kernel that holds whole rows."""
    columns = triton.next_power_of_2(width)
    rows = max(1, TILE // columns)
    warps = max(4, min(32, rows * columns // 1024))
    return {"ROWS": rows, "COLUMNS": columns, "num_warps": warps}


def pairs(*tensors: Tensor) -> bool:
    """Whether two numbers of each of them fit into a register."""
    return all(tensor.element_size() == 2 for tensor in tensors)


def whole(width: int, *tensors: Tensor) -> bool:
    """Whether a program of the forward pass holds a row as a whole.

    tensors are x and the gain: of 16-bit numbers twice as many fit.
    """
    return width <= WHOLE_FORWARD * (1 + pairs(*tensors))


# --8<-- [end:tile]


# --8<-- [start:walk]
def stages(loaded: int) -> int:
    """STAGES of a loop that loads so many bytes each time round: 3 at most."""
    return 1 + min(2, SHARED // loaded)


def walk(width: int, size: int, tensors: int = 2) -> dict[str, int]:
    """tile of a kernel that walks over rows of tensors, size bytes a number."""
    shape = tile(width)
    held = shape["ROWS"] * shape["COLUMNS"]
    warps = 8 if held <= TILE else 16
    if shape["COLUMNS"] * size > AHEAD.value:
        warps, tensors = 32, 1
    ahead = stages(held * size * tensors)
    return {**shape, "num_warps": warps, "STAGES": ahead}


def programs(device: torch.device, warps: int) -> int:
    """How many programs walk over the rows: 16 warps on each SM, or 32."""
    if device.type != "cuda":
        return 4  # the interpreter: any small number shows the partial sums
    found = torch.cuda.get_device_properties(device)
    return max(1, 16 // warps) * found.multi_processor_count


# --8<-- [end:walk]


# --8<-- [start:forward]
def forward(x: Tensor, gain: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """y, in x's shape and dtype, and rstd, (rows,) in float32."""
    rows, *layout = row_layout(x)
    width = x.shape[-1]
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rstd = torch.empty(rows, dtype=torch.float32, device=x.device)
    if rows and not whole(width, x, gain):
        rms_norm_forward_wide[(rows,)](
            x, gain, y, rstd, *layout, eps, width, PIECE, num_warps=16
        )
    elif rows:
        shape = tile(width)
        if width > SINGLE.value and pairs(x, gain):
            shape["maxnreg"] = shape["COLUMNS"] // 1024
        grid = (triton.cdiv(rows, shape["ROWS"]),)
        rms_norm_forward[grid](
            x, gain, y, rstd, rows, *layout, eps, width, **shape
        )
    return y, rstd


# --8<-- [end:forward]


# --8<-- [start:summed]
def summed(partial: Tensor, gain: Tensor) -> list[Tensor]:
    """partial, (1 or 2, programs, width), summed over the programs.

    One tensor each, shape and dtype as gain, in one launch.
    """
    sums, count, width = partial.shape
    columns, rows = (256, 16) if count <= 16 else (16, 512)  # (1)!
    results = [torch.empty_like(gain) for _ in range(sums)]
    sum_partials[(triton.cdiv(width, columns), sums)](
        partial, results[0], results[-1], count, width, columns, rows,
        num_warps=8,
    )  # fmt: skip
    return results


# --8<-- [end:summed]


# --8<-- [start:backward]
def backward(
    dy: Tensor,
    x: Tensor,
    gain: Tensor,
    rstd: Tensor,
    extra: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """dx, in x's shape and dtype, and the gradient of the gain, in its own.

    extra, as x and contiguous, is added to dx; for wide rows only.
    """
    rows, *layout = row_layout(x)
    width = x.shape[-1]
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not rows:
        return dx, torch.zeros_like(gain)
    dy = dy.contiguous()  # (1)!
    if width > WHOLE_BACKWARD:
        rms_norm_backward_wide[(rows,)](
            dy, x, gain, rstd, dx, extra, *layout, width, PIECE, num_warps=16
        )
        most = programs(x.device, 8)
        count = max(1, most * 1024 // width)  # splits of the rows
        partial = gain.new_empty((1, count, width), dtype=torch.float32)
        grid = (triton.cdiv(width, 1024), count)
        gain_gradient[grid](
            dy, x, rstd, partial, rows, *layout, width,
            ROWS=4, COLUMNS=1024, num_warps=8,
        )  # fmt: skip
    else:
        shape = walk(width, x.element_size())
        most = programs(x.device, shape["num_warps"])
        count = min(most, triton.cdiv(rows, shape["ROWS"]))
        partial = gain.new_empty((1, count, width), dtype=torch.float32)
        rms_norm_backward[(count,)](
            dy, x, gain, rstd, dx, partial, rows, *layout, width, **shape
        )
    (dgain,) = summed(partial, gain)
    return dx, dgain


# --8<-- [end:backward]
