import torch
from torch import Tensor


def unit(x: Tensor, dim: int = -1) -> Tensor:
    """x / |x| along dim: RMSNorm's direction, with length one; nan for zero."""
    return x / torch.linalg.vector_norm(x, dim=dim, keepdim=True)


def step_towards(h: Tensor, target: Tensor, alpha: Tensor | float) -> Tensor:
    """From h a share alpha of the way to target, back on the sphere.

    h and target are unit vectors (..., d); alpha is a number or (d,).
    Loshchilov et al. (2024).
    """
    return unit(h + alpha * (target - h))


def slerp(h: Tensor, target: Tensor, share: float) -> Tensor:
    """Exactly share of the arc from h to target; (..., d), not parallel."""
    cosine = (h * target).sum(dim=-1, keepdim=True)
    angle = torch.arccos(cosine)
    there, here = torch.sin(share * angle), torch.sin((1 - share) * angle)
    return (here * h + there * target) / torch.sin(angle)
