# --8<-- [start:tanh]
import triton
import triton.language as tl

TWO = tl.constexpr(2.8853900817779268)  # 2 / ln 2: exp(2 z) = 2 ** (TWO z)


@triton.jit
def tanh(z):
    """tanh in float32; near 0 a series, since 1 - 2 / (1 + e) cancels there."""
    ratio = 1.0 - 2.0 / (1.0 + tl.exp2(z * TWO))  # (1)!
    s = z * z
    series = 2.0 / 15.0 + s * (-17.0 / 315.0 + s * (62.0 / 2835.0))
    series = z + z * s * (-1.0 / 3.0 + s * series)
    return tl.where(s < 0.0625, series, ratio)


@triton.jit
def tanh_slope(z):
    """1 - tanh(z) ** 2 = 4 e / (1 + e) ** 2 with e = exp(-2|z|)."""
    shrunk = tl.exp2(tl.abs(z) * -TWO)  # (2)!
    part = 1.0 / (1.0 + shrunk)
    return 4.0 * shrunk * part * part


# --8<-- [end:tanh]


# --8<-- [start:soft_cap_kernel]
BLOCK = 4096  # elements of one program


@triton.jit
def soft_cap_kernel(x, y, size, cap, BLOCK: tl.constexpr):  # (1)!
    """One block of elements a program: reads x once, writes y once."""
    first = tl.program_id(0).to(tl.int64) * BLOCK  # (2)!
    place = first + tl.arange(0, BLOCK)  # (3)!
    inside = place < size  # (4)!
    value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)  # (5)!
    result = cap * tanh(value * (1.0 / cap))
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)  # (6)!


# --8<-- [end:soft_cap_kernel]


# --8<-- [start:soft_cap_slope_kernel]
@triton.jit
def soft_cap_slope_kernel(dy, x, dx, size, cap, BLOCK: tl.constexpr):
    """Reads dy and x once, writes dx once."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
    slope = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
    result = slope * tanh_slope(value * (1.0 / cap))
    tl.store(dx + place, result.to(dx.dtype.element_ty), mask=inside)


# --8<-- [end:soft_cap_slope_kernel]
