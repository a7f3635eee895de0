import torch

from snippets.layer_norm.reference import LayerNorm, layer_norm

norm = LayerNorm(512).double()  # as initialized: gain 1, bias 0
generator = torch.Generator().manual_seed(0)
normal = torch.randn(
    1000, 512, generator=generator, dtype=torch.float64
)  # (tokens, d)
samples = {
    "mean 0, std 1": normal,
    "mean 0, std 3": 3 * normal,
    "mean 0, std 0.1": 0.1 * normal,
    "mean 2, std 5": 2 + 5 * normal,
    "mean 2, std 1": 2 + normal,
}
print("input            length   moved by   cosine")
with torch.no_grad():
    for name, x in samples.items():
        y = norm(x)
        moved = (y - x).norm(dim=-1) / x.norm(dim=-1)
        cosine = torch.cosine_similarity(x, y, dim=-1)
        row = y.norm(dim=-1).mean(), moved.mean(), cosine.mean()
        print(f"{name:<16} {row[0]:6.2f} {row[1]:10.2f} {row[2]:8.2f}")

pairs = torch.tensor([[1.0, 2.0], [7.0, -4.0], [0.3, 90.0]])
print("d = 2:", layer_norm(pairs, eps=0.0).tolist())
