# --8<-- [start:forward]
from math import prod

import torch
from torch import Tensor

from snippets.fused_residual.launch import add_backward, add_forward
from snippets.triton_rms_norm.operator import (
    check,
    rms_norm_backward_op,
    runs_kernels,
)
from snippets.triton_rms_norm.rows import row_layout


@torch.library.custom_op("norms::add_rms_norm", mutates_args=())
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


@add_rms_norm_op.register_fake
def _(
    x: Tensor, branch: Tensor, gain: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    stream, y = (
        torch.empty(x.shape, dtype=x.dtype, device=x.device) for _ in range(2)
    )
    return stream, y, x.new_empty(prod(x.shape[:-1]), dtype=torch.float32)


# --8<-- [end:forward]


# --8<-- [start:backward]
@torch.library.custom_op("norms::add_rms_norm_backward", mutates_args=())
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


@add_rms_norm_backward_op.register_fake
def _(
    dy: Tensor, dstream: Tensor, stream: Tensor, gain: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(stream), torch.empty_like(gain)


# --8<-- [end:backward]


# --8<-- [start:autograd]
def _save(ctx, inputs, output) -> None:
    _, _, gain, _ = inputs
    stream, _, rstd = output
    ctx.save_for_backward(stream, gain, rstd)
    ctx.mark_non_differentiable(rstd)
    ctx.set_materialize_grads(False)


def _backward(ctx, dstream: Tensor | None, dy: Tensor | None, _):
    if dy is None:  # (1)!
        return dstream, dstream, torch.zeros_like(ctx.saved_tensors[1]), None
    if dstream is None:  # (2)!
        dx, dgain = rms_norm_backward_op(dy, *ctx.saved_tensors)
    else:
        dx, dgain = add_rms_norm_backward_op(dy, dstream, *ctx.saved_tensors)
    return dx, dx, dgain, None


add_rms_norm_op.register_autograd(_backward, setup_context=_save)


def add_rms_norm(
    x: Tensor, branch: Tensor, gain: Tensor, eps: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """The new residual stream x + branch, and its RMSNorm, in one kernel.

    x and branch are (..., width) in one dtype, float32, bfloat16 or float16;
    gain is (width,), in that dtype or float32. The sum is rounded to x's
    dtype before it is normed, as two separate kernels would. ValueError or
    TypeError for anything else.
    """
    stream, y, _ = add_rms_norm_op(x, branch, gain, eps)
    return stream, y


# --8<-- [end:autograd]
