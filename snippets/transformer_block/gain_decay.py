import torch

from snippets.rms_norm.reference import rms_norm

generator = torch.Generator().manual_seed(0)
features = torch.randn(7, 32, generator=generator).double()
weight = torch.randn(32, 32, generator=generator).double()
gain = torch.full((32,), 2.0).double()

whole = rms_norm(features, gain) @ weight.T
moved = rms_norm(features, gain / 4) @ (4 * weight).T
gap = (whole - moved).abs().max() / whole.abs().max()
print("gain / 4, matrix * 4: the same function:", bool(gap < 1e-12))
for name, factor in (("before", 1), ("after", 4)):
    penalty = (gain / factor).square().sum(), (factor * weight).square().sum()
    print(f"{name:6}: decay sees {penalty[0]:6.0f} and {penalty[1]:6.0f}")
