import torch

from snippets.norms_beyond_the_decoder.delta_rule import delta_rule, l2_norm

generator = torch.Generator().manual_seed(0)
q, k, v = torch.randn(3, 300, 16, generator=generator, dtype=torch.float64)
q, k = l2_norm(q), l2_norm(k)
ones = torch.ones(300, 1, dtype=torch.float64)

print("|k|    beta   1 - beta |k|²   largest entry of the state after 300")
for length in (1.0, 1.4, 1.6, 4.0):
    for beta in (0.9,) if length > 1 else (0.9, 1.8):
        _, state = delta_rule(q, length * k, v, beta * ones[:, 0], ones)
        eigenvalue = 1 - beta * length**2
        largest = state.abs().max().item()
        print(f"{length:.1f}{beta:8.1f}{eigenvalue:16.2f}{largest:16.3g}")

tiny = torch.full((4,), 1e-4, dtype=torch.float64)
length = tiny.norm()
print(f"\na key of length {length:.0e} comes out with length")
print(f"eps in the root, 1e-6   {l2_norm(tiny).norm():.3f}")
print(f"max(length, 1e-12)      {(tiny / length.clamp(min=1e-12)).norm():.3f}")
mean = (tiny.square().mean() + 1e-6).rsqrt() / 4**0.5
print(f"RMSNorm over √d, 1e-6   {(tiny * mean).norm():.3f}")
