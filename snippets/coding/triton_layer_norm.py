import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x, gain, bias, y, stride, eps, WIDTH: tl.constexpr, COLUMNS: tl.constexpr
):
    """One program a row, which it walks over three times."""
    row = tl.program_id(0).to(tl.int64)  # offsets may pass 2 ** 31
    source, target = x + row * stride, y + row * WIDTH
    tile = tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for first in tl.range(0, WIDTH, COLUMNS):
        inside = first + tile < WIDTH
        value = tl.load(source + first + tile, mask=inside, other=0.0)
        total += value.to(tl.float32)
    mean = tl.sum(total, axis=0) / WIDTH
    squares = tl.zeros((COLUMNS,), tl.float32)
    for first in tl.range(0, WIDTH, COLUMNS):
        inside = first + tile < WIDTH
        value = tl.load(source + first + tile, mask=inside, other=0.0)
        centred = tl.where(inside, value.to(tl.float32) - mean, 0.0)
        squares += centred * centred
    scale = tl.rsqrt(tl.sum(squares, axis=0) / WIDTH + eps)
    for first in tl.range(0, WIDTH, COLUMNS):
        inside = first + tile < WIDTH
        value = tl.load(source + first + tile, mask=inside, other=0.0)
        weight = tl.load(gain + first + tile, mask=inside, other=0.0)
        shift = tl.load(bias + first + tile, mask=inside, other=0.0)
        unit = (value.to(tl.float32) - mean) * scale
        result = unit * weight.to(tl.float32) + shift.to(tl.float32)
        result = result.to(y.dtype.element_ty)
        tl.store(target + first + tile, result, mask=inside)
