from math import cosh

import torch

from snippets.memory_bound.interpreter import device
from snippets.memory_bound.soft_cap import soft_cap, soft_cap_backward

caps = torch.tensor([0.5, 1.0, 2.0, 3.0, 4.0], device=device)
x = (30 * caps).to(torch.bfloat16)
y = soft_cap(x, 30.0).float()
from_y = 1 - (y / 30) ** 2
from_x = soft_cap_backward(torch.ones_like(x), x, 30.0).float()

print("x / cap    slope   from x   from y, in bfloat16")
for i, z in enumerate(caps.tolist()):
    right = 1 / cosh(float(x[i]) / 30) ** 2
    print(f"{z:7} {right:8.4f} {from_x[i]:8.4f} {from_y[i]:8.4f}")
