# --8<-- [start:angles]
from math import prod

import torch
from torch import Tensor

from snippets.memory_bound.attachment import fake, last, operator
from snippets.qk_norm_rope.heads import head_layout
from snippets.qk_norm_rope.launch import backward, forward
from snippets.triton_rms_norm.operator import check, runs_kernels


def angles(
    time: int, width: int, base: float = 10_000.0, device: str = "cpu"
) -> tuple[Tensor, Tensor]:
    """cos and sin of RoPE's angles, (time, width / 2) each, float32."""
    options = {"dtype": torch.float32, "device": device}
    speed = base ** (-torch.arange(0, width, 2, **options) / width)
    angle = torch.arange(time, **options)[:, None] * speed
    return angle.cos(), angle.sin()


# --8<-- [end:angles]


# --8<-- [start:forward]
def check_heads(x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor) -> None:
    """One clear line for what the kernels cannot take."""
    if x.dim() != 4 or x.shape[-1] % 2:
        raise ValueError(
            f"x is {tuple(x.shape)}, not (batch, time, heads, an even width)"
        )
    check(x, gain)
    head_layout(x)
    shape = (x.shape[1], x.shape[-1] // 2)
    for name, table in (("cos", cos), ("sin", sin)):
        if table.shape != shape or table.dtype != torch.float32:
            found = f"{tuple(table.shape)} {table.dtype}"
            raise ValueError(f"{name} is {found}, not {shape} torch.float32")
        if table.device != x.device or not table.is_contiguous():
            raise ValueError(f"{name} must be contiguous and on {x.device}")


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Each pair of features of x, (batch, time, heads, width), rotated."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]  # all heads of a token alike
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


@operator("norms::qk_norm_rope")
def qk_norm_rope_op(
    x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """y and rstd."""
    check_heads(x, gain, cos, sin)
    if runs_kernels(x):
        with torch.cuda.device_of(x):
            return forward(x, gain, cos, sin, eps)
    wide = x.float()
    rstd = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    y = turned(wide * rstd * gain.float(), cos, sin).to(x.dtype)
    return y.contiguous(), rstd.flatten()


@fake(qk_norm_rope_op)
def _(
    x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return y, x.new_empty(prod(x.shape[:-1]), dtype=torch.float32)


# --8<-- [end:forward]


# --8<-- [start:backward]
@operator("norms::qk_norm_rope_backward")
def qk_norm_rope_backward_op(
    dy: Tensor, x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of x and gain; the angles get none."""
    if runs_kernels(x):
        with torch.cuda.device_of(x):
            return backward(dy, x, gain, cos, sin, rstd)
    scale = rstd.view(*x.shape[:-1], 1)
    unit = x.float() * scale
    slope = turned(dy.float(), cos, -sin)
    dgain = (slope * unit).flatten(0, -2).sum(dim=0)
    slope = slope * gain.float()
    along = (slope * unit).mean(dim=-1, keepdim=True)
    dx = ((slope - unit * along) * scale).to(x.dtype)
    return dx.contiguous(), dgain.to(gain.dtype)


@fake(qk_norm_rope_backward_op)
def _(
    dy: Tensor, x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor]:
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return dx, torch.empty_like(gain)


# --8<-- [end:backward]


# --8<-- [start:autograd]
class _QKNormRoPE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, cos, sin, eps):
        y, rstd = qk_norm_rope_op(x, gain, cos, sin, eps)
        ctx.save_for_backward(x, gain, cos, sin, rstd)
        return y

    @staticmethod
    def backward(ctx, dy):
        found = last(qk_norm_rope_backward_op, dy, *ctx.saved_tensors)
        return *found, None, None, None


def qk_norm_rope(
    x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor, eps: float = 1e-6
) -> Tensor:
    """RMSNorm of each head, then RoPE, forward and backward as kernels.

    x is (batch, time, heads, width), float32, bfloat16 or float16, possibly a
    slice of a packed projection; gain is (width,), in x's dtype or float32.
    cos and sin are (time, width / 2) of the tokens' own positions, float32.
    All arithmetic is float32 with one rounding at the end; the result is
    contiguous in x's dtype. ValueError or TypeError for anything else.
    """
    return _QKNormRoPE.apply(x, gain, cos, sin, eps)


# --8<-- [end:autograd]
