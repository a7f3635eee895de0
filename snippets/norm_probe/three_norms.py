import torch
from torch import nn

from snippets.norm_probe.behaviour import recognise
from snippets.rms_norm.reference import RMSNorm, rms_norm


class OnePlusNorm(nn.Module):
    """RMSNorm whose gain is 1 + a parameter, as in Gemma."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        return rms_norm(x, 1 + self.weight)


class PlainRMSNorm(nn.LayerNorm):
    """A misleading name: it subtracts the mean."""


for norm in (RMSNorm(64), OnePlusNorm(64), PlainRMSNorm(64)):
    found = recognise(norm, torch.zeros(2, 8, 64))
    print(f"{type(norm).__name__}: {found.kind}, gain {found.gain}")
    print(f"  bias {found.bias}, eps {found.eps:g}, {found.cast}")
