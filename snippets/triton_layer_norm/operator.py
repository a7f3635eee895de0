# --8<-- [start:forward]
from math import prod

import torch
from torch import Tensor

from snippets.memory_bound.attachment import fake, last, operator
from snippets.triton_layer_norm.launch import backward, forward
from snippets.triton_rms_norm.operator import check, runs_kernels


@operator("norms::layer_norm")
def layer_norm_op(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """y, mean and rstd."""
    check(x, gain)
    if bias.shape != gain.shape or bias.dtype != gain.dtype:
        raise ValueError(
            f"bias is {tuple(bias.shape)} {bias.dtype}, "
            f"gain {tuple(gain.shape)} {gain.dtype}"
        )
    check(x, bias, "bias")
    if runs_kernels(x):
        with torch.cuda.device_of(x):
            return forward(x, gain, bias, eps)
    wide = x.float()
    mean = wide.mean(dim=-1, keepdim=True)
    centred = wide - mean
    rstd = torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + eps)
    y = (centred * rstd * gain.float() + bias.float()).to(x.dtype)
    return y.contiguous(), mean.flatten(), rstd.flatten()


@fake(layer_norm_op)
def _(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows = prod(x.shape[:-1])
    return y, *(x.new_empty(rows, dtype=torch.float32) for _ in range(2))


# --8<-- [end:forward]


# --8<-- [start:backward]
@operator("norms::layer_norm_backward")
def layer_norm_backward_op(
    dy: Tensor, x: Tensor, gain: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of x, gain and bias."""
    if runs_kernels(x):
        with torch.cuda.device_of(x):
            return backward(dy, x, gain, mean, rstd)
    scale = rstd.view(*x.shape[:-1], 1)
    unit = (x.float() - mean.view(scale.shape)) * scale
    slope = dy.float()
    dgain = (slope * unit).view(-1, x.shape[-1]).sum(dim=0)
    dbias = slope.reshape(-1, x.shape[-1]).sum(dim=0)
    slope = slope * gain.float()
    along = (slope * unit).mean(dim=-1, keepdim=True)
    level = slope.mean(dim=-1, keepdim=True)
    dx = ((slope - level - unit * along) * scale).to(x.dtype)
    return dx.contiguous(), dgain.to(gain.dtype), dbias.to(gain.dtype)


@fake(layer_norm_backward_op)
def _(
    dy: Tensor, x: Tensor, gain: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return dx, torch.empty_like(gain), torch.empty_like(gain)


# --8<-- [end:backward]


# --8<-- [start:autograd]
class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, bias, eps):
        y, mean, rstd = layer_norm_op(x, gain, bias, eps)
        ctx.save_for_backward(x, gain, mean, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        return *last(layer_norm_backward_op, dy, *ctx.saved_tensors), None


def layer_norm(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """LayerNorm over the last dimension, forward and backward as kernels.

    x is (..., width) in float32, bfloat16 or float16, its rows evenly
    spaced; gain and bias are (width,), both in x's dtype or float32.
    Statistics and products are float32, the result is contiguous in x's
    dtype. ValueError or TypeError for anything else.
    """
    return _LayerNorm.apply(x, gain, bias, eps)


# --8<-- [end:autograd]
