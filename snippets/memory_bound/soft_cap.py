# --8<-- [start:soft_cap]
import torch
import triton
from torch import Tensor

from snippets.memory_bound.attachment import fake, last, operator
from snippets.memory_bound.soft_cap_kernels import (
    BLOCK,
    soft_cap_kernel,
    soft_cap_slope_kernel,
)

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


@operator("norms::soft_cap")  # (1)!
def soft_cap_op(x: Tensor, cap: float) -> Tensor:
    check(x, cap)
    if not runs_kernels(x):  # (2)!
        return (cap * torch.tanh(x.float() / cap)).to(x.dtype)
    y = torch.empty_like(x)
    if size := x.numel():
        grid = (triton.cdiv(size, BLOCK),)  # (3)!
        with torch.cuda.device_of(x):  # (4)!
            soft_cap_kernel[grid](x, y, size, cap, BLOCK)
    return y


@fake(soft_cap_op)  # (5)!
def _(x: Tensor, cap: float) -> Tensor:
    return torch.empty_like(x)


# --8<-- [end:soft_cap]


# --8<-- [start:soft_cap_backward]
@operator("norms::soft_cap_backward")
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


@fake(soft_cap_backward)
def _(dy: Tensor, x: Tensor, cap: float) -> Tensor:
    return torch.empty_like(x)


# --8<-- [end:soft_cap_backward]


# --8<-- [start:autograd]
class _SoftCap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cap):
        ctx.save_for_backward(x)  # (1)!
        ctx.cap = cap
        return soft_cap_op(x, cap)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return last(soft_cap_backward, dy, x, ctx.cap), None  # (2)!


def soft_cap(x: Tensor, cap: float) -> Tensor:
    """cap * tanh(x / cap), elementwise, in float32 and rounded to x's dtype.

    x is contiguous, in float32, bfloat16 or float16: ValueError or TypeError
    otherwise. On a CPU outside the interpreter the same formula runs in torch.
    """
    return _SoftCap.apply(x, cap)


# --8<-- [end:autograd]
