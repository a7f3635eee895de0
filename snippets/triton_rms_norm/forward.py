# --8<-- [start:row_start]
import triton
import triton.language as tl

EARLY = tl.constexpr(8192)  # columns up to which the gain is loaded first
SINGLE = tl.constexpr(16_384)  # ... and up to which a row waits in float32


@triton.jit
def offset(row, stride):
    """row * stride, in int64: tensors may pass 2 ** 31 elements."""
    return row.to(tl.int64) * stride


@triton.jit
def row_start(row, heads, token_stride, head_stride, ALIGN: tl.constexpr):
    """Where rows begin: heads of a token, then the next token."""
    token = offset(row // heads, token_stride // ALIGN)
    head = offset(row % heads, head_stride // ALIGN)
    return (token + head) * ALIGN


# --8<-- [end:row_start]


# --8<-- [start:kept]
@triton.jit
def kept(loaded, behind):
    """loaded, which cannot be computed with before behind is known.

    So numbers of 16 bits wait as they are, two in a register.
    """
    if loaded.dtype.primitive_bitwidth == 16:
        nothing = tl.num_programs(1) - 1  # 0, and only the launch knows it
        nothing = (behind.to(tl.int32, bitcast=True) & nothing).to(tl.int16)
        bits = loaded.to(tl.int16, bitcast=True) ^ nothing
        loaded = bits.to(loaded.dtype, bitcast=True)
    return loaded


# --8<-- [end:kept]


# --8<-- [start:rms_norm_forward]
@triton.jit(do_not_specialize=["rows"])  # (1)!
def rms_norm_forward(
    x, gain, y, rstd, rows, heads, token_stride, head_stride,
    ALIGN: tl.constexpr, eps,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """ROWS whole rows a program. Reads x once, writes y and rstd once."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < WIDTH)[None, :]
    start = row_start(row, heads, token_stride, head_stride, ALIGN)
    if COLUMNS <= EARLY:  # (2)!
        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)
    place = x + start[:, None] + column[None, :]
    loaded = tl.load(place, mask=inside, other=0.0)
    value = loaded.to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=1) / WIDTH + eps)  # (3)!
    if COLUMNS > EARLY:
        weight = tl.load(gain + column, mask=column < WIDTH, other=0.0)
    if COLUMNS > SINGLE:  # (4)!
        value = kept(loaded, scale[:, None]).to(tl.float32)
    result = value * scale[:, None] * weight.to(tl.float32)[None, :]
    target = offset(row, WIDTH)[:, None] + column[None, :]
    tl.store(y + target, result.to(y.dtype.element_ty), mask=inside)
    tl.store(rstd + row, scale, mask=row < rows)


# --8<-- [end:rms_norm_forward]


# --8<-- [start:rms_norm_forward_wide]
@triton.jit
def piece(row, column, WIDTH: tl.constexpr, EVICT: tl.constexpr):
    """Some columns of a row, in float32; EVICT: how long to keep them."""
    inside = column < WIDTH
    value = tl.load(row + column, mask=inside, other=0.0, eviction_policy=EVICT)
    return value.to(tl.float32)


@triton.jit
def rms_norm_forward_wide(
    x, gain, y, rstd, heads, token_stride, head_stride,
    ALIGN: tl.constexpr, eps,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """One row a program, in pieces that are read twice: from L2, with luck."""
    row = tl.program_id(0)
    source = x + row_start(row, heads, token_stride, head_stride, ALIGN)
    target = y + offset(row, WIDTH)
    squares = tl.zeros((COLUMNS,), tl.float32)
    for first in tl.range(0, WIDTH, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        value = piece(source, column, WIDTH, "evict_last")  # (1)!
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares, axis=0) / WIDTH + eps)
    tl.store(rstd + row, scale)
    last = (WIDTH - 1) // COLUMNS * COLUMNS
    for first in tl.range(0, WIDTH, COLUMNS):
        column = last - first + tl.arange(0, COLUMNS)  # (2)!
        value = piece(source, column, WIDTH, "evict_first")
        result = value * scale * piece(gain, column, WIDTH, "")
        result = result.to(y.dtype.element_ty)
        tl.store(target + column, result, mask=column < WIDTH)


# --8<-- [end:rms_norm_forward_wide]
