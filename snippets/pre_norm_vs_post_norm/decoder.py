# --8<-- [start:Decoder]
from collections.abc import Callable

import torch
from torch import Tensor, nn

from snippets.pre_norm_vs_post_norm.blocks import PreNormBlock
from snippets.rms_norm.reference import RMSNorm
from snippets.rms_norm.small_decoder import Attention, FeedForward

Norm = Callable[[int], nn.Module]  # builds a norm from d


class Decoder(nn.Module):
    """A small causal decoder; block decides where its norms stand.

    tokens is (batch, time), int64 in [0, vocabulary); the result is
    (batch, time, vocabulary) logits. A layer is two blocks: attention, then
    feed-forward. Without final_norm the head reads the bare stream. No
    position embedding: the causal mask is the only sense of order.
    """

    def __init__(
        self,
        d: int,
        layers: int,
        heads: int,
        vocabulary: int,
        block: Callable[[nn.Module, nn.Module], nn.Module] = PreNormBlock,
        norm: Norm = RMSNorm,
        final_norm: bool = True,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d)
        self.blocks = nn.ModuleList()
        for _ in range(layers):
            for sublayer in (Attention(d, heads), FeedForward(d, nn.GELU())):
                self.blocks.append(block(sublayer, norm(d)))
        self.norm = norm(d) if final_norm else nn.Identity()
        self.head = nn.Linear(d, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


# --8<-- [end:Decoder]


# --8<-- [start:initialize]
@torch.no_grad()
def initialize(decoder: nn.Module, seed: int) -> nn.Module:
    """Draw every matrix with variance 1 / fan-in, in place; biases are zero.

    Embedding rows get variance 1, so the stream enters with an RMS of 1.
    """
    generator = torch.Generator().manual_seed(seed)
    for module in decoder.modules():
        if isinstance(module, nn.Embedding):
            module.weight.normal_(generator=generator)
        elif isinstance(module, nn.Linear):
            std = module.in_features**-0.5
            module.weight.normal_(std=std, generator=generator)
            if module.bias is not None:
                module.bias.zero_()
    return decoder


# --8<-- [end:initialize]
