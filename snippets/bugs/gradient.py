import torch
from torch import Tensor

from snippets.bugs.formula import inverse_rms, wide
from snippets.bugs.habits import (
    bfloat16_gain_gradient,
    float64_gradients,
    input_unchanged,
    views,
)
from snippets.rms_norm.reference import rms_norm


def overwrites_input(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    h = wide(x)  # float32 in: no copy, h is x
    return h.mul_(inverse_rms(h, eps)).mul(gain).to(x.dtype)


def strides_ignored(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """One pass follows the strides of x, the next reads memory in order."""
    r = inverse_rms(wide(x), eps)
    in_order = torch.empty(x.shape).stride()
    again = x.as_strided(x.shape, in_order, x.storage_offset())
    return (wide(again) * r * gain).to(x.dtype)


@torch.no_grad()
def fast_path_only(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return rms_norm(x, gain, eps)


class GainOfEachToken(torch.autograd.Function):
    """Copy the gain to every token; sum its gradients in their own dtype.

    gain is (d,), x (..., d) with a power of two of tokens.
    """

    @staticmethod
    def forward(ctx, gain: Tensor, x: Tensor) -> Tensor:
        return gain.expand_as(x)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        rows = grad.reshape(-1, grad.shape[-1])
        while len(rows) > 1:
            rows = rows[0::2] + rows[1::2]  # rounds at every level
        return rows[0], None


def gradient_rounds(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    h = wide(x)
    gains = wide(GainOfEachToken.apply(gain, x))
    return (h * inverse_rms(h, eps) * gains).to(x.dtype)


GRADIENT = {
    overwrites_input: (rms_norm, input_unchanged),
    strides_ignored: (rms_norm, views),
    fast_path_only: (rms_norm, float64_gradients),
    gradient_rounds: (rms_norm, bfloat16_gain_gradient),
}
