import torch
from torch import nn
from torch.nn import functional as F

from snippets.deepnorm.block import Attention, FeedForward, initialize
from snippets.residual_recipes.t_fixup import t_fixup, t_fixup_factor

D, LEAST, MOST = 32, 4, 64


def change(layers: int, factor: float, seed: int) -> float:
    """How far a tiny SGD step on the matrices moves the output, per step."""
    torch.manual_seed(seed)
    branches = nn.ModuleList()
    for _ in range(layers):
        for branch in (Attention(D, 4), FeedForward(D)):
            initialize(branch, beta=1.0)
            t_fixup(branch, t_fixup_factor("encoder", layers))
            branches.append(branch)
    branches.double()
    x, target = torch.randn(2, 2, 8, D, dtype=torch.float64)
    start = factor * F.layer_norm(x, (D,))

    def output():
        y = start
        for branch in branches:
            y = y + branch(y)
        return y

    weights = list(branches.parameters())
    loss = (output() * target).sum(dim=-1).mean()
    gradients = torch.autograd.grad(loss, weights)
    ends = []
    with torch.no_grad():
        for step in (1e-6, -2e-6):  # there, and as far to the other side
            for weight, gradient in zip(weights, gradients, strict=True):
                weight.sub_(step * gradient)
            ends.append(output())
    return (ends[0] - ends[1]).square().mean().sqrt().item() / 2e-6


print(f"one SGD step, {MOST} layers over {LEAST}")
for name, power in (
    ("embeddings as they are", 0),
    ("times (9N)^(-1/4)", -1 / 4),
):
    ratios = [
        change(MOST, (9 * MOST) ** power, seed)
        / change(LEAST, (9 * LEAST) ** power, seed)
        for seed in range(5)
    ]
    print(f"{name:<24}{sorted(ratios)[2]:6.2f}")
