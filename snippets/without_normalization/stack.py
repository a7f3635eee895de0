import torch
from torch import nn

from snippets.rms_norm.reference import RMSNorm
from snippets.without_normalization.reference import DynamicTanh
from snippets.without_normalization.residual import ScaledResidual, fixup


def branch(d: int, generator: torch.Generator) -> nn.Sequential:
    """Linear, ReLU, Linear: keeps the mean square of x on average."""
    first, last = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
    for layer in (first, last):
        nn.init.normal_(layer.weight, std=d**-0.5, generator=generator)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(first, nn.ReLU(), last)


def stack(kind: str, depth: int, d: int = 64) -> nn.Sequential:
    """depth residual branches of one kind, the same weights in each kind."""
    generator = torch.Generator().manual_seed(0)
    blocks = []
    for _ in range(depth):
        body, alpha = branch(d, generator), 1.0
        if kind == "Pre-Norm":
            body.insert(0, RMSNorm(d))
        elif kind == "DyT":
            body.insert(0, DynamicTanh(d))
        elif kind == "SkipInit":
            alpha = depth**-0.5
        elif kind == "Fixup":
            fixup(body, depth)
        elif kind == "ReZero":
            alpha = 0.0
        blocks.append(ScaledResidual(body, alpha))
    return nn.Sequential(*blocks).double()
