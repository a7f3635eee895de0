import torch

from snippets.deepnorm.block import FeedForward, initialize
from snippets.rms_norm.reference import rms_norm
from snippets.sandwich_norm.attention import CausalAttention

torch.manual_seed(0)
x = torch.randn(2, 16, 64, dtype=torch.float64)
branches = {
    "feed-forward with ReLU": FeedForward(64),
    "attention": CausalAttention(64, 4, qk_norm=False),
    "attention with QK-Norm": CausalAttention(64, 4, qk_norm=True),
}
print("cosine of N(f(x)) and N(f(8 x))")
for name, branch in branches.items():
    initialize(branch.double(), 1.0)
    once, large = (rms_norm(branch(size * x)) for size in (1, 8))
    cosine = torch.cosine_similarity(once, large, dim=-1).mean()
    print(f"{name:<25}{cosine:.3f}")
