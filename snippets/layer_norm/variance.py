import torch

from snippets.layer_norm.moments import (
    sum_of_squares,
    threads,
    two_passes,
    welford,
)

generator = torch.Generator().manual_seed(0)
centred = torch.randn(64, 256, generator=generator, dtype=torch.float64)

print("largest relative error, 64 rows of 256, float32")
print(" mean  E[x²]-E[x]²     two  Welford  merged")
print("       error   NaN  passes")
for mean in (0, 10, 100, 1000, 3000):
    x = (centred + mean).float()
    exact = x.double().var(dim=-1, correction=0)
    single, welfords, merged = sum_of_squares(x), welford(x), threads(x)
    results = (
        single,
        two_passes(x),
        welfords.spread / welfords.count,
        merged.spread / merged.count,
    )
    errors = [(value / exact - 1).abs().max().item() for value in results]
    a, b, c, d = (f"{error:.0e}" for error in errors)
    rows = torch.rsqrt(single + 1e-5).isnan().sum()  # LayerNorm gives NaN
    print(f"{mean:5}  {a}  {rows:>4}   {b}    {c}   {d}")
