import torch
from torch import nn
from torch.nn.utils import parametrizations

from snippets.norm_family.weights import (
    spectral_norm,
    weight_norm,
    weight_norm_backward,
    weight_standardization,
)

torch.manual_seed(0)
layer = nn.Linear(6, 4, bias=False, dtype=torch.float64)
parametrizations.weight_norm(layer)
g, v = layer.parametrizations.weight.parameters()  # (4, 1), (4, 6)
with torch.no_grad():
    g.uniform_(0.5, 2)
grad_w = torch.randn(4, 6, dtype=torch.float64)

gap = (weight_norm(v, g.flatten()) - layer.weight).abs().max()
print("weight as in torch:", bool(gap < 1e-12))
exact = torch.autograd.grad(layer.weight, (v, g), grad_w)
ours = weight_norm_backward(grad_w, v, g.flatten())
for name, a, b in zip("vg", ours, exact, strict=True):
    print(
        f"grad_{name} as in torch:",
        bool((a - b.view_as(a)).abs().max() < 1e-12),
    )

along = (ours[0] * v).sum(1).abs().max()
print("grad_v is orthogonal to v:", bool(along < 1e-12))
centred = v - v.mean(1, keepdim=True)
standard = weight_norm(centred, torch.full_like(v[:, 0], 6**0.5))
gap = (weight_standardization(v, eps=0.0) - standard).abs().max()
print("standardized = centred, g = sqrt(in):", bool(gap < 1e-12))
largest = torch.linalg.svdvals(spectral_norm(v.detach()))[0]
print(f"largest singular value then: {largest:.2f}")
