import torch
from torch import nn

from snippets.deepnorm.block import FeedForward

torch.manual_seed(0)
alpha, norms = 3.5, [nn.LayerNorm(16) for _ in range(7)]
branches = [FeedForward(16) for _ in range(6)]
x = torch.randn(2, 5, 16)

y = norms[0](x)  # as in the paper, after a norm of the embedding
for branch, norm in zip(branches, norms[1:], strict=True):
    y = norm(alpha * y + branch(y))

z = x  # as in the code of GLM-130B and MiniMax-Text-01
for branch, norm in zip(branches, norms[:-1], strict=True):
    h = norm(z)
    z = alpha * h + branch(h)  # h, not z
z = norms[-1](z)  # the model's final norm

print("the same, bit for bit:", torch.equal(y, z))
