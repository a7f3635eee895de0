# --8<-- [start:imports]
import torch
import triton
import triton.language as tl

# --8<-- [end:imports]


# --8<-- [start:walk]
@triton.jit
def walk(
    dy, x, gain, rstd, dx, partial, rows,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A few programs share all rows, contiguous: dx, and a sum each."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    column = tl.arange(0, COLUMNS)
    inside = column < WIDTH
    weight = tl.load(gain + column, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros((COLUMNS,), tl.float32)  # (1)!
    for row in tl.range(program, rows, programs):  # (2)!
        place = tl.cast(row, tl.int64) * WIDTH + column
        scale = tl.load(rstd + row)
        unit = tl.load(x + place, mask=inside, other=0.0).to(tl.float32) * scale
        slope = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
        total += slope * unit  # (3)!
        slope *= weight
        along = tl.sum(slope * unit, axis=0) / WIDTH
        result = (slope - unit * along) * scale
        tl.store(dx + place, result.to(dx.dtype.element_ty), mask=inside)
    tl.store(partial + program * WIDTH + column, total, mask=inside)


# --8<-- [end:walk]


# --8<-- [start:by_walking]
def by_walking(dy, x, gain, eps: float = 1e-6, programs: int = 2):
    """Gradients of x, (rows, width) and contiguous, and of the gain."""
    rows, width = x.shape
    rstd = (x.float().square().mean(-1) + eps).rsqrt()
    dx = torch.empty_like(x)
    partial = torch.empty(programs, width, device=x.device)
    sizes = {"WIDTH": width, "COLUMNS": triton.next_power_of_2(width)}
    with torch.cuda.device_of(x):
        walk[(programs,)](dy, x, gain, rstd, dx, partial, rows, **sizes)
    return dx, partial.sum(0).to(gain.dtype)


# --8<-- [end:by_walking]
