import torch
from torch import Tensor

from snippets.bugs.formula import wide
from snippets.bugs.habits import large_mean

CAP = 50.0


def cap_never_applied(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    return (wide(x) * scale).to(x.dtype)


def capped(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    scores = wide(x) * scale
    return (CAP * torch.tanh(scores / CAP)).to(x.dtype)


SOFT_CAP = {
    cap_never_applied: (capped, large_mean),
}
