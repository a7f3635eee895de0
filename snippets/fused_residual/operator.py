# --8<-- [start:forward]
from math import prod

import torch
from torch import Tensor

from snippets.fused_residual.launch import add_backward, add_forward
from snippets.memory_bound.attachment import fake, last, operator
from snippets.triton_rms_norm.operator import (
    check,
    rms_norm_backward_op,
    runs_kernels,
)
from snippets.triton_rms_norm.rows import row_layout


@operator("norms::add_rms_norm")
def add_rms_norm_op(
    x: Tensor, branch: Tensor, gain: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """stream, y and rstd."""
    check(x, gain)
    if branch.shape != x.shape or branch.dtype != x.dtype:
        raise ValueError(
            f"x is {tuple(x.shape)} {x.dtype}, "
            f"branch {tuple(branch.shape)} {branch.dtype}"
        )
    check(branch, gain)
    if row_layout(x)[1] > 1 or row_layout(branch)[1] > 1:
        raise ValueError(
            "rows of x and branch need one stride each: "
            "call .contiguous() first"
        )
    if runs_kernels(x):
        with torch.cuda.device_of(x):
            return add_forward(x, branch, gain, eps)
    stream = (x + branch).contiguous()
    wide = stream.float()
    rstd = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    y = (wide * rstd * gain.float()).to(x.dtype)
    return stream, y, rstd.flatten()


@fake(add_rms_norm_op)
def _(
    x: Tensor, branch: Tensor, gain: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    stream, y = (
        torch.empty(x.shape, dtype=x.dtype, device=x.device) for _ in range(2)
    )
    return stream, y, x.new_empty(prod(x.shape[:-1]), dtype=torch.float32)


# --8<-- [end:forward]


# --8<-- [start:backward]
@operator("norms::add_rms_norm_backward")
def add_rms_norm_backward_op(
    dy: Tensor, dstream: Tensor, stream: Tensor, gain: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of x (and of branch: they are the same) and of the gain."""
    if runs_kernels(stream):
        with torch.cuda.device_of(stream):
            return add_backward(dy, dstream, stream, gain, rstd)
    scale = rstd.view(*stream.shape[:-1], 1)
    unit, slope = stream.float() * scale, dy.float()
    dgain = (slope * unit).view(-1, stream.shape[-1]).sum(dim=0)
    slope = slope * gain.float()
    along = (slope * unit).mean(dim=-1, keepdim=True)
    dx = (slope - unit * along) * scale + dstream.float()
    return dx.to(stream.dtype).contiguous(), dgain.to(gain.dtype)


@fake(add_rms_norm_backward_op)
def _(
    dy: Tensor, dstream: Tensor, stream: Tensor, gain: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(stream), torch.empty_like(gain)


# --8<-- [end:backward]


# --8<-- [start:autograd]
class _AddRMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, branch, gain, eps):
        stream, y, rstd = add_rms_norm_op(x, branch, gain, eps)
        ctx.save_for_backward(stream, gain, rstd)
        ctx.set_materialize_grads(False)
        return stream, y

    @staticmethod
    def backward(ctx, dstream, dy):
        saved = ctx.saved_tensors
        if dy is None:  # (1)!
            return dstream, dstream, torch.zeros_like(saved[1]), None
        if dstream is None:  # (2)!
            dx, dgain = last(rms_norm_backward_op, dy, *saved)
        else:
            dx, dgain = last(add_rms_norm_backward_op, dy, dstream, *saved)
        return dx, dx, dgain, None


def add_rms_norm(
    x: Tensor, branch: Tensor, gain: Tensor, eps: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """The new residual stream x + branch, and its RMSNorm, in one kernel.

    x and branch are (..., width) in one dtype, float32, bfloat16 or float16;
    gain is (width,), in that dtype or float32. The sum is rounded to x's
    dtype before it is normed, as two separate kernels would. ValueError or
    TypeError for anything else.
    """
    return _AddRMSNorm.apply(x, branch, gain, eps)


# --8<-- [end:autograd]
