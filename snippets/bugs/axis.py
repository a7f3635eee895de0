from torch import Tensor

from snippets.bugs.formula import inverse_rms, wide
from snippets.bugs.habits import HEADS, causality, unequal_heads
from snippets.rms_norm.reference import rms_norm


def statistic_over_time(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    h = wide(x)  # (batch, time, d)
    return (h * inverse_rms(h, eps, dim=(-2, -1)) * gain).to(x.dtype)


def across_heads(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return rms_norm(x, gain, eps)  # one statistic a token


def per_head(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    heads = wide(x).unflatten(-1, (HEADS, -1))  # (..., heads, d / heads)
    return (rms_norm(heads, eps=eps).flatten(-2) * gain).to(x.dtype)


def per_shard(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return per_head(x, gain, eps)  # each rank holds a head, and its own mean


AXIS = {
    statistic_over_time: (rms_norm, causality),
    across_heads: (per_head, unequal_heads),
    per_shard: (across_heads, unequal_heads),
}
