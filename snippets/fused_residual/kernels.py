# --8<-- [start:add_rms_norm_forward]
import triton
import triton.language as tl

from snippets.triton_rms_norm.backward import fetch, now
from snippets.triton_rms_norm.forward import EARLY, offset


@triton.jit(do_not_specialize=["rows"])
def add_rms_norm_forward(
    x, branch, gain, stream, y, rstd, rows, x_stride, branch_stride,
    ALIGN: tl.constexpr, eps,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Reads x and branch, writes their sum and its norm: 2R 2W."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows)[:, None] & (column < WIDTH)
    place = offset(row, WIDTH)[:, None] + column
    if COLUMNS <= EARLY:
        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)
    left = (offset(row, x_stride // ALIGN) * ALIGN)[:, None] + column
    left = tl.load(x + left, mask=inside, other=0.0)
    right = (offset(row, branch_stride // ALIGN) * ALIGN)[:, None] + column
    right = tl.load(branch + right, mask=inside, other=0.0)
    total = left.to(tl.float32) + right.to(tl.float32)
    total = total.to(stream.dtype.element_ty)
    tl.store(stream + place, total, mask=inside)
    value = total.to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=1) / WIDTH + eps)
    if COLUMNS > EARLY:
        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)
    result = value * scale[:, None] * weight.to(tl.float32)
    result = result.to(y.dtype.element_ty)
    tl.store(y + place, result, mask=inside)
    tl.store(rstd + row, scale, mask=row < rows)


# --8<-- [end:add_rms_norm_forward]


# --8<-- [start:add_rms_norm_backward]
@triton.jit(do_not_specialize=["rows"])
def add_rms_norm_backward(
    dy, dstream, stream, gain, rstd, dx, partial, rows,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """RMSNorm's backward walk, and what comes down the stream on top: 3R 1W."""
    program = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    if COLUMNS <= EARLY:
        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    step = tl.num_programs(0) * ROWS
    for first in tl.range(program * ROWS, rows, step, num_stages=STAGES):
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
        place = offset(row, WIDTH)[:, None] + column[None, :]
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        value = tl.load(stream + place, mask=inside, other=0.0)
        slope = fetch(dy + place, inside, COLUMNS).to(tl.float32)
        below = fetch(dstream + place, inside, COLUMNS)
        unit = value.to(tl.float32) * scale
        total += slope * unit
        if COLUMNS > EARLY:
            weight = now(gain + column, column < WIDTH)
        slope *= weight.to(tl.float32)[None, :]
        along = tl.sum(slope * unit, axis=1)[:, None] / WIDTH
        result = (slope - unit * along) * scale + below.to(tl.float32)
        tl.store(dx + place, result.to(dx.dtype.element_ty), mask=inside)
    total = tl.sum(total, axis=0)
    tl.store(partial + program * WIDTH + column, total, mask=column < WIDTH)


# --8<-- [end:add_rms_norm_backward]
