from typing import NamedTuple

import torch
from torch import Tensor

from snippets.pre_norm_vs_post_norm.decoder import Decoder


class LayerTrace(NamedTuple):
    """One layer, attention and feed-forward together, over all tokens."""

    rms: float  # of the stream after the layer
    update: float  # RMS of what the layer added / RMS of its input
    cosine: float  # between the layer's input and output, mean over tokens


def rms(x: Tensor) -> float:
    return x.square().mean().sqrt().item()


@torch.no_grad()
def trace(decoder: Decoder, text: Tensor) -> list[LayerTrace]:
    """Follow the residual stream of text, (batch, time), layer by layer."""
    x = decoder.embedding(text)
    traces = []
    for attention, feed_forward in zip(
        decoder.blocks[::2], decoder.blocks[1::2], strict=True
    ):
        y = feed_forward(attention(x))
        cosine = torch.cosine_similarity(x, y, dim=-1).mean().item()
        traces.append(LayerTrace(rms(y), rms(y - x) / rms(x), cosine))
        x = y
    return traces
