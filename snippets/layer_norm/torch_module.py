import torch
from torch import nn

from snippets.layer_norm.reference import LayerNorm

d = 48
generator = torch.Generator().manual_seed(0)
tokens = 3 + torch.randn(2, 5, d, generator=generator)
pairs = {
    "gain and bias": (LayerNorm(d), nn.LayerNorm(d)),
    "gain alone": (LayerNorm(d, bias=False), nn.LayerNorm(d, bias=False)),
    "neither": (
        LayerNorm(d, gain=False, bias=False),
        nn.LayerNorm(d, elementwise_affine=False),
    ),
}

print("learned         parameters   differ by less than 1e-5")
for name, (ours, theirs) in pairs.items():
    with torch.no_grad():
        for own, copy in zip(
            ours.parameters(), theirs.parameters(), strict=True
        ):
            own.uniform_(0.5, 1.5, generator=generator)
            copy.copy_(own)
    count = sum(parameter.numel() for parameter in ours.parameters())
    gap = (ours(tokens) - theirs(tokens)).abs().max()
    print(f"{name:<15} {count:>10}   {bool(gap < 1e-5)}")
