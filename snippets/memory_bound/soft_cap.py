# --8<-- [start:tanh]
import torch
import triton
import triton.language as tl
from torch import Tensor

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


# --8<-- [start:soft_cap]
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def check(x: Tensor, cap: float) -> None:
    """One clear line for what the kernels cannot take."""
    if x.dtype not in DTYPES:
        raise TypeError(f"x is {x.dtype}; known: {', '.join(map(str, DTYPES))}")
    if not x.is_contiguous():
        raise ValueError(f"strides {x.stride()}: call x.contiguous() first")
    if not cap > 0:
        raise ValueError(f"cap is {cap}, not a positive number")


def runs_kernels(x: Tensor) -> bool:
    """On a GPU; on a CPU only in the interpreter, TRITON_INTERPRET=1."""
    return x.is_cuda or triton.knobs.runtime.interpret


@torch.library.custom_op("norms::soft_cap", mutates_args=())  # (1)!
def soft_cap(x: Tensor, cap: float) -> Tensor:
    """cap * tanh(x / cap), elementwise, in float32 and rounded to x's dtype.

    x is contiguous, in float32, bfloat16 or float16: ValueError or TypeError
    otherwise. On a CPU outside the interpreter the same formula runs in torch.
    """
    check(x, cap)
    if not runs_kernels(x):  # (2)!
        return (cap * torch.tanh(x.float() / cap)).to(x.dtype)
    y = torch.empty_like(x)
    if size := x.numel():
        grid = (triton.cdiv(size, BLOCK),)  # (3)!
        with torch.cuda.device_of(x):  # (4)!
            soft_cap_kernel[grid](x, y, size, cap, BLOCK)
    return y


@soft_cap.register_fake  # (5)!
def _(x: Tensor, cap: float) -> Tensor:
    return torch.empty_like(x)


# --8<-- [end:soft_cap]


# --8<-- [start:soft_cap_backward]
@torch.library.custom_op("norms::soft_cap_backward", mutates_args=())
def soft_cap_backward(dy: Tensor, x: Tensor, cap: float) -> Tensor:
    """dy times the slope at x, in x's shape and dtype."""
    if not runs_kernels(x):
        shrunk = torch.exp(-2.0 * (x.float() / cap).abs())
        slope = 4.0 * shrunk / (1.0 + shrunk).square()
        return (dy.float() * slope).to(x.dtype).contiguous()
    dy = dy.contiguous()  # (1)!
    dx = torch.empty_like(x)
    if size := x.numel():
        grid = (triton.cdiv(size, BLOCK),)
        with torch.cuda.device_of(x):
            soft_cap_slope_kernel[grid](dy, x, dx, size, cap, BLOCK)
    return dx


@soft_cap_backward.register_fake
def _(dy: Tensor, x: Tensor, cap: float) -> Tensor:
    return torch.empty_like(x)


def _save(ctx, inputs, output) -> None:
    x, ctx.cap = inputs
    ctx.save_for_backward(x)


def _backward(ctx, dy: Tensor) -> tuple[Tensor, None]:
    (x,) = ctx.saved_tensors
    return soft_cap_backward(dy, x, ctx.cap), None


soft_cap.register_autograd(_backward, setup_context=_save)  # (2)!
# --8<-- [end:soft_cap_backward]
