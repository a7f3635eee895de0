# --8<-- [start:layer_norm_forward]
import triton
import triton.language as tl

from snippets.triton_rms_norm.forward import EARLY, offset, row_start


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
    value = tl.load(
        x + start[:, None] + column[None, :], mask=inside, other=0.0
    )
    value = value.to(tl.float32)
    middle = tl.sum(value, axis=1) / WIDTH
    centred = tl.where(inside, value - middle[:, None], 0.0)  # (1)!
    scale = tl.rsqrt(tl.sum(centred * centred, axis=1) / WIDTH + eps)
    if COLUMNS > EARLY:
        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)
        shift = tl.load(bias + column, mask=column < WIDTH, other=0.0)
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
        value = tl.load(source + column, mask=column < WIDTH, other=0.0)
        sums += value.to(tl.float32)
    middle = tl.sum(sums, axis=0) / WIDTH
    squares = tl.zeros((COLUMNS,), tl.float32)
    for first in tl.range(0, WIDTH, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        inside = column < WIDTH
        value = tl.load(source + column, mask=inside, other=0.0)
        centred = tl.where(inside, value.to(tl.float32) - middle, 0.0)
        squares += centred * centred
    scale = tl.rsqrt(tl.sum(squares, axis=0) / WIDTH + eps)
    tl.store(mean + row, middle)
    tl.store(rstd + row, scale)
    for first in tl.range(0, WIDTH, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        inside = column < WIDTH
        value = tl.load(source + column, mask=inside, other=0.0)
        weight = tl.load(gain + column, mask=inside, other=0.0).to(tl.float32)
        shift = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
        result = (value.to(tl.float32) - middle) * scale * weight + shift
        tl.store(target + column, result.to(y.dtype.element_ty), mask=inside)


# --8<-- [end:layer_norm_forward_wide]
