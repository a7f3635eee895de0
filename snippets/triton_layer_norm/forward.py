# --8<-- [start:layer_norm_forward]
import triton
import triton.language as tl

from snippets.triton_rms_norm.forward import (
    EARLY,
    SINGLE,
    kept,
    offset,
    piece,
    row_start,
)


@triton.jit(do_not_specialize=["rows"])
def layer_norm_forward(
    x, gain, bias, y, mean, rstd, rows, heads, token_stride, head_stride,
    ALIGN: tl.constexpr, eps,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """ROWS whole rows a program: two reductions, one reading of x."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
    start = row_start(row, heads, token_stride, head_stride, ALIGN)
    if COLUMNS <= EARLY:
        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)
        shift = tl.load(bias + column, mask=column < WIDTH, other=0.0)
    loaded = tl.load(
        x + start[:, None] + column[None, :], mask=inside, other=0.0
    )
    value = loaded.to(tl.float32)
    middle = tl.sum(value, axis=1) / WIDTH
    if COLUMNS > SINGLE:  # (1)!
        value = kept(loaded, middle[:, None]).to(tl.float32)
    centred = tl.where(inside, value - middle[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=1) / WIDTH + eps)
    if COLUMNS > EARLY:
        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)
        shift = tl.load(bias + column, mask=column < WIDTH, other=0.0)
    if COLUMNS > SINGLE:
        value = kept(loaded, scale[:, None]).to(tl.float32)
        centred = value - middle[:, None]
    result = centred * scale[:, None] * weight.to(tl.float32)[None, :]
    result += shift.to(tl.float32)[None, :]
    target = offset(row, WIDTH)[:, None] + column[None, :]
    tl.store(y + target, result.to(y.dtype.element_ty), mask=inside)
    tl.store(mean + row, middle, mask=row < rows)
    tl.store(rstd + row, scale, mask=row < rows)


# --8<-- [end:layer_norm_forward]


# --8<-- [start:layer_norm_forward_wide]
@triton.jit
def layer_norm_forward_wide(
    x, gain, bias, y, mean, rstd, heads, token_stride, head_stride,
    ALIGN: tl.constexpr, eps,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """One row a program, in pieces, read three times: twice from L2."""
    row = tl.program_id(0)
    source = x + row_start(row, heads, token_stride, head_stride, ALIGN)
    target = y + offset(row, WIDTH)
    sums = tl.zeros((COLUMNS,), tl.float32)
    for first in tl.range(0, WIDTH, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        sums += piece(source, column, WIDTH, "evict_last")
    middle = tl.sum(sums, axis=0) / WIDTH
    squares = tl.zeros((COLUMNS,), tl.float32)
    last = (WIDTH - 1) // COLUMNS * COLUMNS
    for first in tl.range(0, WIDTH, COLUMNS):
        column = last - first + tl.arange(0, COLUMNS)
        value = piece(source, column, WIDTH, "evict_last")
        centred = tl.where(column < WIDTH, value - middle, 0.0)
        squares += centred * centred
    scale = tl.rsqrt(tl.sum(squares, axis=0) / WIDTH + eps)
    tl.store(mean + row, middle)
    tl.store(rstd + row, scale)
    for first in tl.range(0, WIDTH, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        result = piece(source, column, WIDTH, "evict_first") - middle
        result *= scale * piece(gain, column, WIDTH, "")
        result += piece(bias, column, WIDTH, "")
        result = result.to(y.dtype.element_ty)
        tl.store(target + column, result, mask=column < WIDTH)


# --8<-- [end:layer_norm_forward_wide]
