import torch
from torch import Tensor

from snippets.soft_capping.reference import soft_cap

cap, words = 30.0, 1000
generator = torch.Generator().manual_seed(0)
logits = 10 * torch.randn(200, words, generator=generator, dtype=torch.float64)
capped = soft_cap(logits, cap)


def top(z: Tensor, temperature: float) -> Tensor:
    """Mean probability of the most likely word."""
    return (z / temperature).softmax(dim=-1).amax(dim=-1).mean()


same = torch.equal(logits.argmax(dim=-1), capped.argmax(dim=-1))
print("greedy decoding picks the same words:", same)
for t in (1.0, 0.7):
    print(f"temperature {t}, top probability: {top(logits, t):.2f}", end=", ")
    print(f"with the cap {top(capped, t):.2f}")


def change(z: Tensor, shifted: Tensor) -> Tensor:
    """Largest change of a probability."""
    return (z.softmax(dim=-1) - shifted.softmax(dim=-1)).abs().max()


for shift in (10, 40):
    moved = soft_cap(logits + shift, cap)
    print(f"{shift} more on every logit changes a probability by", end=" ")
    print(f"{change(logits, logits + shift):.2f}", end=", ")
    print(f"with the cap by {change(capped, moved):.2f}")
