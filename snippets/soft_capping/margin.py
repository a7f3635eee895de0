import torch

from snippets.soft_capping.reference import soft_cap

cap = 50.0
print("two logits    after the cap    margin   weight of the larger   slope")
for level in (0.0, 50.0, 100.0, 150.0, 200.0):
    pair = torch.tensor([level + 10, level], dtype=torch.float64)
    capped = soft_cap(pair, cap)
    high, low = capped.tolist()
    weight = capped.softmax(dim=-1)[0].item()
    slope = 1 - (high / cap) ** 2
    print(f"{pair[0]:4.0f}, {level:3.0f} {high:9.2f}, {low:5.2f}", end="")
    print(f" {high - low:9.2f} {weight:22.3f} {slope:7.4f}")
