import torch
from torch.nn import functional as F

from snippets.normalized_transformer.sphere import unit

generator = torch.Generator().manual_seed(0)
print("dimension   spread of cosines   times √d   over √d")
for d in (16, 64, 256, 1024):
    a, b = torch.randn(2, 4000, d, generator=generator, dtype=torch.float64)
    cosine = (unit(a) * unit(b)).sum(dim=-1)
    spread = cosine.std().item()
    print(
        f"{d:9} {spread:19.3f} {spread * d**0.5:10.2f} {spread / d**0.5:9.4f}"
    )

for name, factor in (("without √d", 1.0), ("with √d", 1024**0.5)):
    v = factor * cosine  # what SiLU reads, in 1024 dimensions
    bent = (F.silu(v) - v / 2).std() / F.silu(v).std()
    print(f"{name}: share of SiLU that is not linear {bent:.2f}")
