import torch
from torch import Tensor

from snippets.bugs.formula import inverse_rms, one_plus, wide
from snippets.bugs.habits import (
    large_float16,
    large_mean,
    one_rounding,
    output_dtype,
)
from snippets.rms_norm.reference import rms_norm


def two_moments(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    h = wide(x)
    mean = h.mean(-1, keepdim=True)
    variance = h.square().mean(-1, keepdim=True) - mean.square()
    return ((h - mean) * torch.rsqrt(variance + eps) * gain).to(x.dtype)


def centred_first(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    h = wide(x)
    return rms_norm(h - h.mean(-1, keepdim=True), gain, eps).to(x.dtype)


def square_then_upcast(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return (wide(x) * inverse_rms(x, eps) * gain).to(x.dtype)


def one_plus_rounds(x: Tensor, offset: Tensor, eps: float) -> Tensor:
    return rms_norm(x, 1 + offset, eps)


def cast_back_forgotten(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return rms_norm(wide(x), gain, eps)


PRECISION = {
    two_moments: (centred_first, large_mean),
    square_then_upcast: (rms_norm, large_float16),
    one_plus_rounds: (one_plus, one_rounding),
    cast_back_forgotten: (rms_norm, output_dtype),
}
