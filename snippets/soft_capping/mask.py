import torch

from snippets.soft_capping.reference import soft_cap

cap = 50.0
future = torch.tensor([False, False, True, True])
print("visible logits   future weight: mask, then cap   cap, then mask")
for level in (0.0, -20.0, -50.0, -200.0):
    logits = torch.tensor([level, level - 1, 0, 0], dtype=torch.float64)
    wrong = soft_cap(logits.masked_fill(future, -torch.inf), cap)
    right = soft_cap(logits, cap).masked_fill(future, -torch.inf)
    before, after = (
        each.softmax(dim=-1)[future].sum() for each in (wrong, right)
    )
    print(f"{level:14.0f} {before:31.0e} {after:16.0f}")
