import torch
from torch import nn

from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
from snippets.pre_norm_vs_post_norm.decoder import Decoder, initialize

BLOCKS = {"Post-Norm": PostNormBlock, "Pre-Norm": PreNormBlock}


def stack(
    placement: str, layers: int, d: int, equal_weights: bool, seed: int = 0
) -> nn.ModuleList:
    """The blocks of a causal decoder with ReLU, float64, freshly drawn.

    With equal_weights the queries are zero: token t gives 1/t to each of
    the t tokens that it sees.
    """
    decoder = Decoder(d, layers, 4, 1, block=BLOCKS[placement])
    for block in decoder.blocks[1::2]:
        block.sublayer.activation = nn.ReLU()
    initialize(decoder, seed)
    if equal_weights:
        with torch.no_grad():
            for block in decoder.blocks[0::2]:
                block.sublayer.reader.weight[:d] = 0
    return decoder.blocks.double()
