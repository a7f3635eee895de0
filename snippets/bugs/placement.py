import torch
from torch import Tensor

from snippets.bugs.formula import wide
from snippets.bugs.habits import randn
from snippets.rms_norm.reference import rms_norm

branch = torch.tanh  # stands for attention or the feed-forward network
ALPHA = 200**0.25  # DeepNorm, encoder of 100 layers: (2N)^(1/4)


def residual_after_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    h = rms_norm(wide(x), gain, eps)
    return (h + branch(h)).to(x.dtype)


def pre_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    h = wide(x)
    return (h + branch(rms_norm(h, gain, eps))).to(x.dtype)


def alpha_on_the_branch(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    h = wide(x)
    return rms_norm(h + ALPHA * branch(h), gain, eps).to(x.dtype)


def deepnorm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    h = wide(x)
    return rms_norm(ALPHA * h + branch(h), gain, eps).to(x.dtype)


PLACEMENT = {
    residual_after_norm: (pre_norm, randn),
    alpha_on_the_branch: (deepnorm, randn),
}
