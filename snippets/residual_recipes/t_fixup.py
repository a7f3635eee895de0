import torch
from torch import nn

SCALED = {"value", "output", "up", "down"}


def t_fixup_factor(stack: str, layers: int) -> float:
    """Factor of the scaled matrices. Huang et al. (2020), as in their code."""
    if stack == "encoder":
        return 0.67 * layers**-0.25
    if stack == "decoder":  # that attends to an encoder
        return (9 * layers) ** -0.25
    raise ValueError(f"{stack!r} is neither 'encoder' nor 'decoder'")


@torch.no_grad()
def t_fixup(branch: nn.Module, factor: float) -> None:
    """Shrink, in place, what Xavier drew, but for queries and keys.

    The block is x + branch(x): no norm anywhere. The embeddings of both
    stacks are multiplied by the decoder's factor.
    """
    for name, layer in branch.named_modules():
        if name.rpartition(".")[2] in SCALED:
            layer.weight.mul_(factor)
