# --8<-- [start:qk_norm_rope_forward]
import triton
import triton.language as tl

from snippets.triton_rms_norm.forward import offset, row_start


@triton.jit(do_not_specialize=["rows", "time"])
def qk_norm_rope_forward(
    x, gain, cos, sin, y, rstd, rows, time,
    heads, token_stride, head_stride, ALIGN: tl.constexpr, eps,
    HALF: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """ROWS heads a program, each as two halves: RMSNorm, then rotation."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # (1)!
    column = tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows)[:, None] & (column < HALF)
    start = (
        row_start(row, heads, token_stride, head_stride, ALIGN)[:, None]
        + column
    )
    angle = (row // heads % time)[:, None] * HALF + column
    c = tl.load(cos + angle, mask=inside, other=0.0)
    s = tl.load(sin + angle, mask=inside, other=0.0)
    first = tl.load(gain + column, mask=column < HALF, other=0.0).to(tl.float32)
    second = tl.load(gain + HALF + column, mask=column < HALF, other=0.0)
    a = tl.load(x + start, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(x + start + HALF, mask=inside, other=0.0).to(tl.float32)
    square = tl.sum(a * a, axis=1) + tl.sum(b * b, axis=1)
    scale = tl.rsqrt(square / (2 * HALF) + eps)
    a *= scale[:, None] * first
    b *= scale[:, None] * second.to(tl.float32)
    target = y + offset(row, 2 * HALF)[:, None] + column
    out = y.dtype.element_ty
    tl.store(target, (a * c - b * s).to(out), mask=inside)
    tl.store(target + HALF, (b * c + a * s).to(out), mask=inside)
    tl.store(rstd + row, scale, mask=row < rows)


# --8<-- [end:qk_norm_rope_forward]


# --8<-- [start:qk_norm_rope_backward]
@triton.jit(do_not_specialize=["rows", "time"])
def qk_norm_rope_backward(
    dy, x, gain, cos, sin, rstd, dx, partial, rows, time,
    heads, token_stride, head_stride, ALIGN: tl.constexpr,
    HALF: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """The rotation turned back, then RMSNorm's backward pass."""
    program = tl.program_id(0)
    column = tl.arange(0, COLUMNS)[None, :]
    first = tl.load(gain + column, mask=column < HALF, other=0.0).to(tl.float32)
    second = tl.load(gain + HALF + column, mask=column < HALF, other=0.0)
    second = second.to(tl.float32)
    first_total = tl.zeros((ROWS, COLUMNS), tl.float32)
    second_total = tl.zeros((ROWS, COLUMNS), tl.float32)
    step = tl.num_programs(0) * ROWS
    for start in tl.range(program * ROWS, rows, step, num_stages=STAGES):
        row = start + tl.arange(0, ROWS)  # (1)!
        inside = (row < rows)[:, None] & (column < HALF)
        source = (
            row_start(row, heads, token_stride, head_stride, ALIGN)[:, None]
            + column
        )
        place = offset(row, 2 * HALF)[:, None] + column
        angle = (row // heads % time)[:, None] * HALF + column
        c = tl.load(cos + angle, mask=inside, other=0.0)
        s = tl.load(sin + angle, mask=inside, other=0.0)
        scale = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        a = tl.load(x + source, mask=inside, other=0.0).to(tl.float32) * scale
        b = tl.load(x + source + HALF, mask=inside, other=0.0)
        b = b.to(tl.float32) * scale
        turned = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
        other = tl.load(dy + place + HALF, mask=inside, other=0.0).to(
            tl.float32
        )
        da = turned * c + other * s  # (2)!
        db = other * c - turned * s
        first_total += da * a
        second_total += db * b  # (3)!
        da *= first
        db *= second
        along = tl.sum(da * a, axis=1) + tl.sum(db * b, axis=1)  # (4)!
        along = along[:, None] / (2 * HALF)
        out = dx.dtype.element_ty
        tl.store(dx + place, ((da - a * along) * scale).to(out), mask=inside)
        tl.store(
            dx + place + HALF, ((db - b * along) * scale).to(out), mask=inside
        )
    target = partial + program * (2 * HALF) + column
    first_sum = tl.sum(first_total, axis=0)[None, :]
    second_sum = tl.sum(second_total, axis=0)[None, :]
    tl.store(target, first_sum, mask=column < HALF)
    tl.store(target + HALF, second_sum, mask=column < HALF)


# --8<-- [end:qk_norm_rope_backward]
