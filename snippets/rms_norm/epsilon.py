# --8<-- [start:eps_outside]
import torch
from torch import Tensor

from snippets.rms_norm.reference import rms_norm


def eps_outside(x: Tensor, eps: float) -> Tensor:
    """x / (RMS(x) + eps), no gain; x is (..., d)."""
    return x / (x.square().mean(dim=-1, keepdim=True).sqrt() + eps)


# --8<-- [end:eps_outside]


# --8<-- [start:compare]
eps = 1e-6
direction = torch.tensor([3.0, -1.0, 4.0, -2.0]) / 7.5**0.5  # RMS 1
print("input RMS   output RMS: eps inside   eps outside")
for size in (1.0, 1e-2, 1e-3, 1e-4, 1e-6, 0.0):
    token = size * direction
    rows = rms_norm(token, eps=eps), eps_outside(token, eps)
    inside, outside = (row.square().mean().sqrt() for row in rows)
    print(f"{size:9.0e} {inside:21.3f} {outside:13.3f}")

zero = torch.zeros(4, requires_grad=True)
for function in (rms_norm, eps_outside):
    (slope,) = torch.autograd.grad(function(zero, eps=eps)[0], zero)
    print(f"{function.__name__}: slope at the zero vector {slope[0]:.0f}")
# --8<-- [end:compare]
