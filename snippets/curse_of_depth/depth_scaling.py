# --8<-- [start:ScaledNorm]
import torch
from torch import Tensor, nn

from snippets.pre_norm_vs_post_norm.decoder import Decoder


class ScaledNorm(nn.Module):
    """LayerNorm Scaling: norm(x) / sqrt(layer), layers counted from 1.

    norm maps (..., d) to (..., d). Sun et al. (2025).
    """

    def __init__(self, norm: nn.Module, layer: int) -> None:
        super().__init__()
        if layer < 1:
            raise ValueError(f"layers are counted from 1, not {layer}")
        self.norm, self.factor = norm, layer**-0.5

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x) * self.factor


def scale_norms(decoder: Decoder) -> None:
    """Scale, in place, both norms of every layer; not the final norm."""
    for index, block in enumerate(decoder.blocks):
        block.norm = ScaledNorm(block.norm, index // 2 + 1)


# --8<-- [end:ScaledNorm]


# --8<-- [start:scale_writers]
@torch.no_grad()
def scale_writers(decoder: Decoder) -> None:
    """GPT-2's initialization, in place: writers / sqrt(number of blocks)."""
    for block in decoder.blocks:
        block.sublayer.writer.weight.mul_(len(decoder.blocks) ** -0.5)


# --8<-- [end:scale_writers]
