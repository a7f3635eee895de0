# --8<-- [start:NormalizedTransformer]
import torch
from torch import Tensor, nn

from snippets.normalized_transformer.block import NormalizedBlock
from snippets.normalized_transformer.scale import Scale
from snippets.normalized_transformer.sphere import unit


class NormalizedTransformer(nn.Module):
    """nGPT over a vocabulary; tokens (batch, time) int64 to logits.

    Call normalize_weights once before training and after each step.
    """

    def __init__(
        self, vocabulary: int, d: int, layers: int, heads: int, inner: int
    ) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, d)
        self.blocks = nn.ModuleList(
            NormalizedBlock(d, heads, inner) for _ in range(layers)
        )
        self.head = nn.Linear(d, vocabulary, bias=False)
        self.s_z = Scale(vocabulary, init=1.0, scale=d**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.token(tokens)
        for block in self.blocks:
            h = block(h)
        return self.s_z() * self.head(h)


# --8<-- [end:NormalizedTransformer]


# --8<-- [start:normalize_weights]
@torch.no_grad()
def normalize_weights(model: NormalizedTransformer) -> None:
    """Put, in place, every vector of size d in the matrices on the sphere.

    nn.Linear stores (out, in). Matrices that read h have d as their second
    dimension, matrices that write to h as their first.
    """
    reading, writing = [model.token, model.head], []
    for block in model.blocks:
        reading += [block.query, block.key, block.value, block.up, block.gate]
        writing += [block.attention_out, block.feed_forward_out]
    for matrices, dim in ((reading, 1), (writing, 0)):
        for matrix in matrices:
            matrix.weight.copy_(unit(matrix.weight, dim))


# --8<-- [end:normalize_weights]
