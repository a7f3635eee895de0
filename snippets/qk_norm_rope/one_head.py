# --8<-- [start:one_head]
import torch
import triton
import triton.language as tl


@triton.jit
def one_head(
    x, gain, cos, sin, y, time, heads, token_stride, head_stride, eps,
    HALF: tl.constexpr,
):  # fmt: skip
    """One head a program, its half a power of two: RMSNorm, then rotation."""
    row, column = tl.program_id(0).to(tl.int64), tl.arange(0, HALF)
    source = (
        x + row // heads * token_stride + row % heads * head_stride + column
    )
    angle = row // heads % time * HALF + column  # (1)!
    c, s = tl.load(cos + angle), tl.load(sin + angle)
    a = tl.load(source).to(tl.float32)
    b = tl.load(source + HALF).to(tl.float32)  # (2)!
    square = tl.sum(a * a, axis=0) + tl.sum(b * b, axis=0)  # (3)!
    scale = tl.rsqrt(square / (2 * HALF) + eps)
    a *= scale * tl.load(gain + column).to(tl.float32)  # (4)!
    b *= scale * tl.load(gain + HALF + column).to(tl.float32)
    target = y + row * (2 * HALF) + column
    tl.store(target, (a * c - b * s).to(y.dtype.element_ty))
    tl.store(target + HALF, (b * c + a * s).to(y.dtype.element_ty))  # (5)!


# --8<-- [end:one_head]


# --8<-- [start:by_heads]
def by_heads(x, gain, cos, sin, eps: float = 1e-6) -> torch.Tensor:
    """x, (batch, time, heads, width), may be a view of a packed projection.

    cos and sin are (time, width / 2) in float32; the result is contiguous.
    """
    batch, time, heads, width = x.shape
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    strides = x.stride(1), x.stride(2)  # a batch follows as a token does
    programs = batch * time * heads
    with torch.cuda.device_of(x):
        one_head[(programs,)](
            x, gain, cos, sin, y, time, heads, *strides, eps, HALF=width // 2
        )
    return y


# --8<-- [end:by_heads]
