import torch

from snippets.rms_norm.reference import rms_norm
from snippets.sandwich_norm.blocks import ReorderedNorm, SandwichNorm
from snippets.sandwich_norm.stacks import PreNorm, stack

print("24 layers         gradient  spread of logits")
print("              first / last    first    last")
for name, placement, qk_norm in (
    ("Pre-Norm", PreNorm, False),
    ("sandwich", SandwichNorm, False),
    ("reordered", ReorderedNorm, False),
    ("reordered, QK-Norm", ReorderedNorm, True),
):
    blocks = stack(placement, layers=24, qk_norm=qk_norm)
    x, target = torch.randn(2, 2, 16, 64, dtype=torch.float64)
    spreads = []
    for block in blocks:
        if block is blocks[0] or block is blocks[-2]:
            seen = block.pre(x) if hasattr(block, "pre") else x
            q, k = block.branch.queries_and_keys(seen)
            logits = q @ k.mT / q.shape[-1] ** 0.5
            spreads.append(logits.std().item())
        x = block(x)
    (rms_norm(x) * target).sum(dim=-1).mean().backward()
    sizes = [block.branch.down.weight.grad.norm() for block in blocks[1::2]]
    print(f"{name:<20}{sizes[0] / sizes[-1]:6.1f} ", end="")
    print("".join(f"{spread:8.1f}" for spread in spreads))
