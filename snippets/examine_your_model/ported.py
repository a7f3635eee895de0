import torch
from torch import Tensor
from torch.nn import functional as F

from snippets.examine_your_model.clean import TINY
from snippets.transformer_block.decoder import Decoder


class Ported(Decoder):
    """A decoder rewritten from another framework, with its checkpoint."""

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return F.linear(x, self.embedding.weight)


def decoder() -> Ported:
    model, random = Ported(TINY), torch.Generator().manual_seed(0)
    for name, parameter in model.named_parameters():
        if name.endswith("gain"):  # stands for the checkpoint's file
            stored = 0.1 * torch.randn(parameter.shape, generator=random)
            parameter.data.copy_(stored)
    return model
