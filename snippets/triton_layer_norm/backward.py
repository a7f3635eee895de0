# --8<-- [start:layer_norm_backward]
import triton
import triton.language as tl

from snippets.triton_rms_norm.backward import fetch, now
from snippets.triton_rms_norm.forward import (
    EARLY,
    kept,
    offset,
    piece,
    row_start,
)


@triton.jit(do_not_specialize=["rows"])
def layer_norm_backward(
    dy, x, gain, mean, rstd, dx, partial, rows,
    heads, token_stride, head_stride, ALIGN: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """RMSNorm's walk over the rows, with a second mean and a second sum.

    Reads dy and x once, writes dx once, and one float32 row for gain and
    bias each, in partial[0] and partial[1], for each program.
    """
    program, programs = tl.program_id(0), tl.num_programs(0)
    column = tl.arange(0, COLUMNS)
    if COLUMNS <= EARLY:
        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)
    gain_total = tl.zeros((ROWS, COLUMNS), tl.float32)
    bias_total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in tl.range(
        program * ROWS, rows, programs * ROWS, num_stages=STAGES
    ):
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
        start = row_start(row, heads, token_stride, head_stride, ALIGN)
        middle = tl.load(mean + row, mask=row < rows, other=0.0)[:, None]
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        value = tl.load(
            x + start[:, None] + column[None, :], mask=inside, other=0.0
        )
        loaded = fetch(
            dy + offset(row, WIDTH)[:, None] + column[None, :], inside, COLUMNS
        )
        unit = (value.to(tl.float32) - middle) * scale  # (1)!
        slope = loaded.to(tl.float32)
        gain_total += slope * unit
        bias_total += slope  # (2)!
        if COLUMNS > EARLY:
            weight = now(gain + column, column < WIDTH)
        slope *= weight.to(tl.float32)[None, :]
        along = tl.sum(slope * unit, axis=1)[:, None] / WIDTH
        level = tl.sum(slope, axis=1)[:, None] / WIDTH
        if COLUMNS > EARLY:  # (3)!
            loaded, value = kept(loaded, along), kept(value, along)
            unit = (value.to(tl.float32) - middle) * scale
            slope = loaded.to(tl.float32)
            slope *= kept(weight[None, :], along).to(tl.float32)
        result = (slope - level - unit * along) * scale
        tl.store(
            dx + offset(row, WIDTH)[:, None] + column[None, :],
            result.to(dx.dtype.element_ty),
            mask=inside,
        )
    target = partial + program * WIDTH + column
    tl.store(target, tl.sum(gain_total, axis=0), mask=column < WIDTH)
    target += programs * WIDTH
    tl.store(target, tl.sum(bias_total, axis=0), mask=column < WIDTH)


# --8<-- [end:layer_norm_backward]


# --8<-- [start:wide]
@triton.jit
def layer_norm_backward_wide(
    dy, x, gain, mean, rstd, dx,
    heads, token_stride, head_stride, ALIGN: tl.constexpr,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """dx of one row a program, in pieces that are read twice."""
    row = tl.program_id(0)
    source = x + row_start(row, heads, token_stride, head_stride, ALIGN)
    slopes = dy + offset(row, WIDTH)
    middle, scale = tl.load(mean + row), tl.load(rstd + row)
    products = tl.zeros((COLUMNS,), tl.float32)
    sums = tl.zeros((COLUMNS,), tl.float32)
    for first in tl.range(0, WIDTH, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        value = piece(source, column, WIDTH, "evict_last")
        slope = piece(slopes, column, WIDTH, "evict_last")
        slope *= piece(gain, column, WIDTH, "")
        products += slope * (value - middle) * scale
        sums += slope
    along = tl.sum(products, axis=0) / WIDTH
    level = tl.sum(sums, axis=0) / WIDTH
    last = (WIDTH - 1) // COLUMNS * COLUMNS
    for first in tl.range(0, WIDTH, COLUMNS):
        column = last - first + tl.arange(0, COLUMNS)
        unit = piece(source, column, WIDTH, "evict_first") - middle
        slope = piece(slopes, column, WIDTH, "evict_first")
        slope *= piece(gain, column, WIDTH, "")
        result = (slope - level - unit * scale * along) * scale
        place = dx + offset(row, WIDTH) + column
        result = result.to(dx.dtype.element_ty)
        tl.store(place, result, mask=column < WIDTH)


@triton.jit(do_not_specialize=["rows"])
def affine_gradients(
    dy, x, mean, rstd, partial, rows,
    heads, token_stride, head_stride, ALIGN: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Some columns of many rows a program: a second reading of dy and x."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    split, splits = tl.program_id(1), tl.num_programs(1)
    gain_total = tl.zeros((ROWS, COLUMNS), tl.float32)
    bias_total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in tl.range(split * ROWS, rows, splits * ROWS, num_stages=3):
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
        start = row_start(row, heads, token_stride, head_stride, ALIGN)[:, None]
        place = offset(row, WIDTH)[:, None]
        middle = tl.load(mean + row, mask=row < rows, other=0.0)[:, None]
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        value = tl.load(x + start + column[None, :], mask=inside, other=0.0)
        slope = tl.load(dy + place + column[None, :], mask=inside, other=0.0)
        slope = slope.to(tl.float32)
        unit = (value.to(tl.float32) - middle) * scale
        gain_total += slope * unit
        bias_total += slope
    target = partial + split * WIDTH + column
    tl.store(target, tl.sum(gain_total, axis=0), mask=column < WIDTH)
    target += splits * WIDTH
    tl.store(target, tl.sum(bias_total, axis=0), mask=column < WIDTH)


# --8<-- [end:wide]
