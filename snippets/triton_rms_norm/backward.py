# --8<-- [start:rms_norm_backward]
import triton
import triton.language as tl

from snippets.triton_rms_norm.forward import EARLY, offset, piece, row_start

AHEAD = tl.constexpr(32_768)  # bytes of a row that is loaded ahead as a whole


@triton.jit
def now(place, inside):
    """tl.load that no loop does ahead, since it is in an if."""
    value = tl.zeros(place.shape, place.dtype.element_ty)
    if tl.num_programs(1) == 1:  # always, and only the launch knows it
        value = tl.load(place, mask=inside, other=0.0)
    return value


@triton.jit
def fetch(place, inside, COLUMNS: tl.constexpr):
    """tl.load, which a loop may do ahead; now, in rows beyond AHEAD."""
    size = place.dtype.element_ty.primitive_bitwidth // 8
    if COLUMNS * size <= AHEAD:
        value = tl.load(place, mask=inside, other=0.0)
    else:
        value = now(place, inside)
    return value


@triton.jit(do_not_specialize=["rows"])
def rms_norm_backward(
    dy, x, gain, rstd, dx, partial, rows,
    heads, token_stride, head_stride, ALIGN: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """A program walks over many rows; its sum for the gain stays in registers.

    Reads dy and x once, writes dx once, and one float32 row of partial for
    each program.
    """
    program = tl.program_id(0)
    column = tl.arange(0, COLUMNS)
    if COLUMNS <= EARLY:
        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)  # (1)!
    step = tl.num_programs(0) * ROWS  # (2)!
    for first in tl.range(program * ROWS, rows, step, num_stages=STAGES):
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
        start = row_start(row, heads, token_stride, head_stride, ALIGN)
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        value = tl.load(
            x + start[:, None] + column[None, :], mask=inside, other=0.0
        )
        slope = fetch(  # (3)!
            dy + offset(row, WIDTH)[:, None] + column[None, :], inside, COLUMNS
        )
        unit = value.to(tl.float32) * scale
        slope = slope.to(tl.float32)
        total += slope * unit
        if COLUMNS > EARLY:  # (4)!
            weight = now(gain + column, column < WIDTH)
        slope *= weight.to(tl.float32)[None, :]
        along = tl.sum(slope * unit, axis=1)[:, None] / WIDTH
        result = (slope - unit * along) * scale
        tl.store(
            dx + offset(row, WIDTH)[:, None] + column[None, :],
            result.to(dx.dtype.element_ty),
            mask=inside,
        )
    total = tl.sum(total, axis=0)
    tl.store(partial + program * WIDTH + column, total, mask=column < WIDTH)


# --8<-- [end:rms_norm_backward]


# --8<-- [start:sum_partials]
@triton.jit(do_not_specialize=["programs"])
def sum_partials(
    partial, result, second, programs, WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """result[column] = partial[0, :, column].sum(), always in the same order.

    In a grid of (blocks of columns, 2), second gets the sums of partial[1].
    """
    if tl.program_id(1) == 1:
        partial += programs * WIDTH
        result = second
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in tl.range(0, programs, ROWS):  # (1)!
        row = first + tl.arange(0, ROWS)
        inside = (row < programs)[:, None] & (column < WIDTH)[None, :]
        place = partial + row[:, None] * WIDTH + column[None, :]
        total += tl.load(place, mask=inside, other=0.0)
    total = tl.sum(total, axis=0).to(result.dtype.element_ty)
    tl.store(result + column, total, mask=column < WIDTH)


# --8<-- [end:sum_partials]


# --8<-- [start:wide]
@triton.jit
def rms_norm_backward_wide(
    dy, x, gain, rstd, dx, extra,
    heads, token_stride, head_stride, ALIGN: tl.constexpr,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """dx of one row a program, in pieces that are read twice.

    extra, unless None, is added to dx before it is rounded.
    """
    row = tl.program_id(0)
    source = x + row_start(row, heads, token_stride, head_stride, ALIGN)
    slopes = dy + offset(row, WIDTH)
    scale = tl.load(rstd + row)
    products = tl.zeros((COLUMNS,), tl.float32)
    for first in tl.range(0, WIDTH, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        unit = piece(source, column, WIDTH, "evict_last") * scale
        slope = piece(slopes, column, WIDTH, "evict_last")
        products += slope * piece(gain, column, WIDTH, "") * unit
    along = tl.sum(products, axis=0) / WIDTH
    last = (WIDTH - 1) // COLUMNS * COLUMNS
    for first in tl.range(0, WIDTH, COLUMNS):
        column = last - first + tl.arange(0, COLUMNS)
        unit = piece(source, column, WIDTH, "evict_first") * scale
        slope = piece(slopes, column, WIDTH, "evict_first")
        slope *= piece(gain, column, WIDTH, "")
        result = (slope - unit * along) * scale
        if extra is not None:
            more = extra + offset(row, WIDTH)
            result += piece(more, column, WIDTH, "evict_first")
        place = dx + offset(row, WIDTH) + column
        result = result.to(dx.dtype.element_ty)
        tl.store(place, result, mask=column < WIDTH)


@triton.jit(do_not_specialize=["rows"])
def gain_gradient(
    dy, x, rstd, partial, rows,
    heads, token_stride, head_stride, ALIGN: tl.constexpr,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Some columns of many rows a program: a second reading of dy and x."""
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    split, splits = tl.program_id(1), tl.num_programs(1)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in tl.range(split * ROWS, rows, splits * ROWS, num_stages=3):
        row = first + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
        start = row_start(row, heads, token_stride, head_stride, ALIGN)[:, None]
        place = offset(row, WIDTH)[:, None]
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        value = tl.load(x + start + column[None, :], mask=inside, other=0.0)
        slope = tl.load(dy + place + column[None, :], mask=inside, other=0.0)
        unit = value.to(tl.float32) * scale
        total += slope.to(tl.float32) * unit
    total = tl.sum(total, axis=0)
    tl.store(partial + split * WIDTH + column, total, mask=column < WIDTH)


# --8<-- [end:wide]
