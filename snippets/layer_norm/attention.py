import torch

from snippets.layer_norm.reference import layer_norm

d = 8
generator = torch.Generator().manual_seed(0)
outer = 3 * torch.randn(4, d, generator=generator, dtype=torch.float64)
inner = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64) @ outer
raw = torch.cat([outer, inner[None]])  # the last key lies between the others
queries = torch.randn(10_000, d, generator=generator, dtype=torch.float64)

for name, keys in (("raw", raw), ("normalized", layer_norm(raw))):
    winner = (queries @ keys.T).argmax(dim=-1)  # the key with most attention
    wins = (winner == 4).double().mean()
    uniform = torch.ones(d, dtype=torch.float64) @ keys.T
    print(f"{name} keys")
    print(f"  the inner key wins for {wins:.2f} of the queries")
    spread = uniform.max() - uniform.min()
    print(f"  the all-ones query: scores differ by {spread:.2f}")
