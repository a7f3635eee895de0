import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snippets.normformer.block import Block


class Stack(nn.Module):
    """Embedding, blocks, final LayerNorm, head; tokens is (batch, time)."""

    def __init__(
        self, blocks: int, d: int, heads: int, **switches: bool
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, d)
        self.blocks = nn.ModuleList(
            Block(d, heads, **switches) for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, 100, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def initialize(model: Stack, scheme: str) -> None:
    """Fill the matrices in place; gains and biases stay.

    gpt: all N(0, 0.02²), without GPT-2's factor for residual layers.
    xavier: linear layers Xavier uniform, the embedding N(0, 1).
    """
    for parameter in model.parameters():
        if parameter.ndim > 1 and scheme == "gpt":
            nn.init.normal_(parameter, std=0.02)
        elif parameter.ndim > 1:
            nn.init.xavier_uniform_(parameter)
    if scheme == "xavier":
        nn.init.normal_(model.embedding.weight)


def fc2_gradients(model: Stack, tokens: Tensor) -> Tensor:
    """Mean |gradient| of every block's fc2 weight, relative to the last's."""
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    weights = [block.ffn.fc2.weight for block in model.blocks]
    gradients = torch.autograd.grad(loss, weights)
    sizes = torch.stack([each.abs().mean() for each in gradients])
    return sizes / sizes[-1]
