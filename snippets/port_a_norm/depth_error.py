import torch
from torch import Tensor, nn

from snippets.transformer_block.decoder import Block, Sizes


def random_blocks(sizes: Sizes) -> nn.ModuleList:
    """Blocks whose branches are about as large as what the embedding writes."""
    blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.blocks))
    for parameter in blocks.parameters():
        if parameter.ndim == 1:
            nn.init.uniform_(parameter, 0.5, 1.5)
        else:
            nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
    return blocks


@torch.no_grad()
def depth_errors(
    original: nn.ModuleList, port: nn.ModuleList, x: Tensor
) -> dict[str, list[float]]:
    """The relative error after each block of a port, in two ways.

    original is in float64. 'stream': each block reads what the port's blocks
    before it made. 'alone': it reads the original's stream.
    """

    def error(found: Tensor, right: Tensor) -> float:
        return ((found.double() - right).norm() / right.norm()).item()

    found = {"stream": [], "alone": []}
    right = x.double()
    for theirs, ours in zip(original, port, strict=True):
        fed = right.to(x.dtype)
        found["alone"].append(error(ours(fed), theirs(fed.double())))
        x, right = ours(x), theirs(right)
        found["stream"].append(error(x, right))
    return found
