# --8<-- [start:one_row]
import torch
import triton
import triton.language as tl


@triton.jit
def one_row(x, b, gain, s, y, eps, WIDTH: tl.constexpr, COLUMNS: tl.constexpr):
    """One contiguous row a program: s = x + b and y = norm(s), 2R 2W."""
    column = tl.arange(0, COLUMNS)
    inside = column < WIDTH
    place = tl.program_id(0).to(tl.int64) * WIDTH + column
    left = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    right = tl.load(b + place, mask=inside, other=0.0).to(tl.float32)
    total = (left + right).to(s.dtype.element_ty)  # (1)!
    tl.store(s + place, total, mask=inside)
    value = total.to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / WIDTH + eps)
    weight = tl.load(gain + column, mask=inside, other=0.0).to(tl.float32)
    result = (value * scale * weight).to(y.dtype.element_ty)
    tl.store(y + place, result, mask=inside)


# --8<-- [end:one_row]


# --8<-- [start:by_rows]
def by_rows(x, b, gain, eps: float = 1e-6) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum of x and b, (rows, width) and contiguous, and its RMSNorm."""
    rows, width = x.shape
    s, y = torch.empty_like(x), torch.empty_like(x)
    columns = triton.next_power_of_2(width)
    with torch.cuda.device_of(x):
        one_row[(rows,)](x, b, gain, s, y, eps, WIDTH=width, COLUMNS=columns)
    return s, y


# --8<-- [end:by_rows]
