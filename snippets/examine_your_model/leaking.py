import torch
from torch import Tensor

from snippets.examine_your_model.clean import TINY
from snippets.rms_norm.reference import RMSNorm
from snippets.transformer_block.decoder import Decoder


class SentenceNorm(RMSNorm):
    """RMSNorm of a decoder. x is (batch, time, d)."""

    def forward(self, x: Tensor) -> Tensor:
        dims = tuple(range(1, x.ndim))
        mean_square = x.float().square().mean(dim=dims, keepdim=True)
        y = x.float() / (torch.sqrt(mean_square) + self.eps)
        return (y * self.gain).to(x.dtype)


def decoder() -> Decoder:
    model = Decoder(TINY)
    for block in model.blocks:
        block.ffn_norm = SentenceNorm(TINY.d)
    return model
