import torch

query, key = torch.tensor([3.0, 4.0]), torch.tensor([4.0, 3.0])
for size in (1, 4):
    q, k = size * query, size * key
    cosine = (q / q.norm()) @ (k / k.norm())
    print(f"matrices times {size}: product {q @ k:.0f}, cosine {cosine:.2f}")
