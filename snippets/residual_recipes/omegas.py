from math import log

import torch
from torch.nn import functional as F

from snippets.deepnorm.block import Attention, FeedForward, initialize
from snippets.deepnorm.coefficients import coefficients
from snippets.residual_recipes.admin import Admin, profile

SHOWN = (1, 4, 16, 64, 192)

torch.manual_seed(0)
branches = [
    kind for _ in range(96) for kind in (Attention(64, 4), FeedForward(64))
]
for branch in branches:
    initialize(branch, 1.0)
x = F.layer_norm(torch.randn(2, 16, 64, dtype=torch.float64), (64,))
omegas = profile([Admin(branch, 64).double() for branch in branches], x)

n = len(branches)
constant = ((n + 1) / log(n + 1) - 1) ** 0.5  # admin-torch, O(log n)
alpha = coefficients(decoder_layers=n // 2)["decoder"].alpha
print("sublayer     " + "".join(f"{i:7}" for i in SHOWN))
for name, factors in (
    ("Admin", omegas),
    ("admin-torch", [constant] * n),
    ("DeepNorm", [alpha] * n),
):
    print(f"{name:<13}" + "".join(f"{factors[i - 1]:7.2f}" for i in SHOWN))
