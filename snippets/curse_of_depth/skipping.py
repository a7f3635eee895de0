from collections.abc import Container

import torch
from torch import Tensor

from snippets.pre_norm_vs_post_norm.decoder import Decoder


@torch.no_grad()
def read_out(
    decoder: Decoder, text: Tensor, skip: Container[int] = ()
) -> Tensor:
    """What the head reads when some layers, counted from 1, are skipped."""
    x = decoder.embedding(text)
    for index, block in enumerate(decoder.blocks):
        if index // 2 + 1 not in skip:
            x = block(x)
    return decoder.norm(x)
