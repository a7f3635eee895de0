# --8<-- [start:Admin]
from collections.abc import Iterable

import torch
from torch import Tensor, nn


class Admin(nn.Module):
    """LayerNorm(omega * x + branch(x)), omega learned, one per feature.

    x is (..., d) and so is branch(x). Liu et al. (2020).
    """

    def __init__(self, branch: nn.Module, d: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.branch, self.norm = branch, nn.LayerNorm(d, eps)
        self.omega = nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.omega * x + self.branch(x))


# --8<-- [end:Admin]


# --8<-- [start:profile]
@torch.no_grad()
def profile(blocks: Iterable[Admin], x: Tensor) -> list[float]:
    """Set each omega, in place, from one forward pass; return them.

    x (..., d) is what the first block reads. The first omega is 1; every
    next one is the root of Var(omega * x) + Var(branch(x)), taken over all
    entries in the block before. As in the authors' code.
    """
    omega, found = 1.0, []
    for block in blocks:
        block.omega.fill_(omega)
        found.append(omega)
        stream, update = block.omega * x, block.branch(x)
        variance = stream.var(correction=0) + update.var(correction=0)  # (1)!
        omega = variance.sqrt().item()
        x = block.norm(stream + update)
    return found


# --8<-- [end:profile]
