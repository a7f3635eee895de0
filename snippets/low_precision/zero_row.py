import torch

from snippets.low_precision.naive import rms_norm_naive
from snippets.rms_norm.reference import rms_norm

generator = torch.Generator().manual_seed(0)
rows = torch.randn(3, 64, generator=generator)
rows[1, 7] = 300.0  # one large coordinate in the middle row
rows = rows.half()
half_gain = (0.5 + torch.rand(64, generator=generator)).half()

for method in (rms_norm_naive, rms_norm):
    leaf = rows.clone().requires_grad_()
    result = method(leaf, half_gain, 1e-6)
    result.sum().backward()
    print(f"{method.__name__}: NaN anywhere: {bool(result.isnan().any())}")
    print("  zeros per row, output:  ", (result == 0).sum(-1).tolist())
    print("  zeros per row, gradient:", (leaf.grad == 0).sum(-1).tolist())

infinite = torch.tensor([2.0, float("inf"), 3.0])  # float32
print("inf in the input:", rms_norm(infinite).tolist())
