# --8<-- [start:check]
from math import prod

import torch
import triton
from torch import Tensor

from snippets.memory_bound.attachment import fake, last, operator
from snippets.triton_rms_norm.launch import backward, forward
from snippets.triton_rms_norm.rows import row_layout

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def check(x: Tensor, gain: Tensor, name: str = "gain") -> None:
    """One clear line for what the kernels cannot take."""
    width = x.shape[-1] if x.dim() else 0
    if width == 0:
        raise ValueError(f"x of shape {tuple(x.shape)} has no features to norm")
    if x.dtype not in DTYPES:
        raise TypeError(f"x is {x.dtype}; known: {', '.join(map(str, DTYPES))}")
    if gain.dtype not in (x.dtype, torch.float32):
        wanted = " or ".join({f"{x.dtype}": 0, "torch.float32": 0})
        raise TypeError(f"{name} is {gain.dtype}; it must be {wanted}")
    if gain.shape != (width,) or not gain.is_contiguous():
        raise ValueError(
            f"{name} is {tuple(gain.shape)}, not contiguous ({width},)"
        )
    if x.device != gain.device:
        raise ValueError(f"x is on {x.device}, {name} on {gain.device}")
    row_layout(x)


def runs_kernels(x: Tensor) -> bool:
    """On a GPU; on a CPU only in the interpreter, TRITON_INTERPRET=1."""
    return x.is_cuda or triton.knobs.runtime.interpret


# --8<-- [end:check]


# --8<-- [start:forward]
@operator("norms::rms_norm")
def rms_norm_op(x: Tensor, gain: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """y and rstd; what torch.compile and torch.export see is one node."""
    check(x, gain)
    if runs_kernels(x):
        with torch.cuda.device_of(x):
            return forward(x, gain, eps)
    wide = x.float()
    rstd = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    y = (wide * rstd * gain.float()).to(x.dtype)
    return y.contiguous(), rstd.flatten()


@fake(rms_norm_op)
def _(x: Tensor, gain: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return y, x.new_empty(prod(x.shape[:-1]), dtype=torch.float32)


# --8<-- [end:forward]


# --8<-- [start:backward]
@operator("norms::rms_norm_backward")
def rms_norm_backward_op(
    dy: Tensor, x: Tensor, gain: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of x and gain."""
    if runs_kernels(x):
        with torch.cuda.device_of(x):
            return backward(dy, x, gain, rstd)
    scale = rstd.view(*x.shape[:-1], 1)
    unit, slope = x.float() * scale, dy.float()
    dgain = (slope * unit).view(-1, x.shape[-1]).sum(dim=0)
    slope = slope * gain.float()
    along = (slope * unit).mean(dim=-1, keepdim=True)
    dx = ((slope - unit * along) * scale).to(x.dtype)
    return dx.contiguous(), dgain.to(gain.dtype)


@fake(rms_norm_backward_op)
def _(
    dy: Tensor, x: Tensor, gain: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return dx, torch.empty_like(gain)


# --8<-- [end:backward]


# --8<-- [start:autograd]
class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, eps):
        y, rstd = rms_norm_op(x, gain, eps)  # (1)!
        ctx.save_for_backward(x, gain, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        return *last(rms_norm_backward_op, dy, *ctx.saved_tensors), None  # (2)!


def rms_norm(x: Tensor, gain: Tensor, eps: float = 1e-6) -> Tensor:
    """RMSNorm over the last dimension, forward and backward as kernels.

    x is (..., width) in float32, bfloat16 or float16, its rows evenly
    spaced; gain is (width,), in x's dtype or float32. Statistics and
    products are float32, the result is contiguous in x's dtype. On a CPU
    the same formulas run in torch, or the kernels in Triton's interpreter.
    ValueError or TypeError for anything else.
    """
    return _RMSNorm.apply(x, gain, eps)


# --8<-- [end:autograd]
