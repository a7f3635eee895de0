import torch
from torch.nn import functional as F

from snippets.why_normalize.standardize import standardize

torch.manual_seed(0)
x = 3 + 5 * torch.randn(32, 7, 48, dtype=torch.float64)  # (batch, tokens, d)

layer = standardize(x, dim=-1, eps=1e-5)
gap = (layer - F.layer_norm(x, (48,))).abs().max()
print("over the features of a token, LayerNorm:", bool(gap < 1e-12))

batch = standardize(x, dim=(0, 1), eps=1e-5)
library = F.batch_norm(x.mT, None, None, training=True).mT
gap = (batch - library).abs().max()
print("over batch and tokens, BatchNorm:", bool(gap < 1e-12))

skewed = torch.rand(100_000, dtype=torch.float64).log().neg()  # exponential
scores = standardize(skewed)
print(f"z-scores: mean {abs(scores.mean()):.2f}, sd {scores.std():.2f}")
print(f"lowest {scores.min():.2f}, highest {scores.max():.1f}")
