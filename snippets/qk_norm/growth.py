import torch

from snippets.rms_norm.reference import rms_norm

d = 64
generator = torch.Generator().manual_seed(0)
query, key = torch.randn(2, d, d, generator=generator).double() / d**0.5
tokens = rms_norm(torch.randn(256, d, generator=generator).double())


def spread(q: torch.Tensor, k: torch.Tensor) -> float:
    """Standard deviation of the logits of all pairs of tokens."""
    return (q @ k.mT / d**0.5).std().item()


print("both matrices times   plain logits   with RMSNorm on q and k")
for factor in (1, 2, 4, 8, 16):
    q, k = tokens @ (factor * query).mT, tokens @ (factor * key).mT
    plain, normed = spread(q, k), spread(rms_norm(q), rms_norm(k))
    print(f"{factor:19d} {plain:14.1f} {normed:25.2f}")
