import torch
from torch import Tensor

from snippets.bugs.habits import faint_rows, randn, uneven_gain
from snippets.rms_norm.reference import rms_norm


def wide(x: Tensor) -> Tensor:
    """x in float32, or as it is if it is float32 or float64 already."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def inverse_rms(h: Tensor, eps: float, dim: int | tuple = -1) -> Tensor:
    return torch.rsqrt(h.square().mean(dim, keepdim=True) + eps)


def divides_by_rsqrt(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    h = wide(x)
    return (h / inverse_rms(h, eps) * gain).to(x.dtype)


def eps_hard_coded(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return rms_norm(x, gain, 1e-6)


def gain_twice(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return rms_norm(x, gain, eps) * gain.to(x.dtype)


def one_plus_forgotten(x: Tensor, offset: Tensor, eps: float) -> Tensor:
    return rms_norm(x, offset, eps)


def one_plus(x: Tensor, offset: Tensor, eps: float) -> Tensor:
    """Right where the stored number is the gain's distance from one."""
    return rms_norm(x, 1 + wide(offset), eps)


FORMULA = {
    divides_by_rsqrt: (rms_norm, randn),
    eps_hard_coded: (rms_norm, faint_rows),
    gain_twice: (rms_norm, uneven_gain),
    one_plus_forgotten: (one_plus, randn),
}
