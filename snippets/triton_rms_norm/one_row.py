import triton
import triton.language as tl


@triton.jit
def one_row(x, gain, y, eps, WIDTH: tl.constexpr, COLUMNS: tl.constexpr):
    """The simplest kernel: one contiguous row a program."""
    column = tl.arange(0, COLUMNS)  # (1)!
    inside = column < WIDTH
    start = tl.program_id(0).to(tl.int64) * WIDTH
    value = tl.load(x + start + column, mask=inside, other=0.0)  # (2)!
    value = value.to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / WIDTH + eps)  # (3)!
    weight = tl.load(gain + column, mask=inside, other=0.0)
    result = value * scale * weight.to(tl.float32)
    tl.store(y + start + column, result.to(y.dtype.element_ty), mask=inside)
