import torch

for factor in (2.0, 0.5):
    plain = normed = torch.ones(4)
    for _ in range(30):
        plain = factor * plain
        normed = factor * normed
        normed = normed / normed.square().mean().sqrt()
    print(f"factor {factor}: plain {plain[0]:.2g}, with a norm {normed[0]:.2g}")
