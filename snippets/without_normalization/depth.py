import torch

from snippets.without_normalization.stack import stack

generator = torch.Generator().manual_seed(1)
x = torch.randn(32, 64, generator=generator, dtype=torch.float64)
print("RMS of the stream    L = 4     L = 16     L = 64")
for kind in ("plain", "Pre-Norm", "DyT", "SkipInit", "Fixup", "ReZero"):
    print(f"{kind:<15}", end="")
    for depth in (4, 16, 64):
        with torch.no_grad():
            y = stack(kind, depth)(x)
        print(f"{y.square().mean().sqrt():11.3g}", end="")
    print()
