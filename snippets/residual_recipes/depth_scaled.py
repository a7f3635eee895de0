from collections.abc import Sequence

import torch

from snippets.sandwich_norm.blocks import SandwichNorm


@torch.no_grad()
def scale_exits(
    blocks: Sequence[SandwichNorm],
    attention: float = 0.283,
    network: float = 0.432,
) -> None:
    """Start, in place, the exit gains of a sandwich at c / sqrt(layers).

    blocks alternate attention and feed-forward network, two to a layer;
    each kind has its c. The gains stay learned. Yin et al. (2025).
    """
    if not blocks or len(blocks) % 2:
        raise ValueError(f"{len(blocks)} blocks are not two to a layer")
    root = (len(blocks) // 2) ** 0.5  # of layers, not of blocks
    for index, block in enumerate(blocks):
        constant = network if index % 2 else attention
        block.post.gain.fill_(constant / root)
