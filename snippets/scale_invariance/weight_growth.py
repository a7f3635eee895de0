# --8<-- [start:train]
import math
from itertools import pairwise

import torch

from snippets.scale_invariance.linear import scale_invariant_linear

lr, steps = 0.5, 1000


def train(start: float, decay: float) -> tuple[list[float], float]:
    """|W| before and after each SGD step, and the RMS of the last angles."""
    torch.manual_seed(0)
    teacher, weight = torch.randn(2, 8, 16, dtype=torch.float64)
    weight *= start / weight.norm()
    lengths, angles = [start], []
    for _ in range(steps):
        x = torch.randn(4, 16, dtype=torch.float64)
        noise = torch.randn(4, 8, dtype=torch.float64)
        target = scale_invariant_linear(x, teacher) + noise
        weight.requires_grad_()
        loss = (scale_invariant_linear(x, weight) - target).square().mean()
        (grad,) = torch.autograd.grad(loss, weight)
        old, weight = weight.detach(), weight.detach()
        weight = weight - lr * (grad + decay * weight)
        cosine = (old * weight).sum() / (old.norm() * weight.norm())
        angles.append(math.acos(min(cosine.item(), 1.0)))
        lengths.append(weight.norm().item())
    return lengths, math.sqrt(sum(a * a for a in angles[-300:]) / 300)


# --8<-- [end:train]


# --8<-- [start:compare]
print("decay  |W| start   end    rate   angle")
always_longer = True
for decay in (0.0, 0.01):
    for start in (1.0, 5.0, 25.0):
        lengths, angle = train(start, decay)
        rate = lr / lengths[-1] ** 2  # effective
        print(f"{decay:5}{start:11.0f}{lengths[-1]:6.1f}", end="")
        print(f"{rate:8.4f}{angle:8.3f}")
        if decay == 0:
            always_longer &= all(a < b for a, b in pairwise(lengths))
print("no decay, longer after every step:", always_longer)
print(f"sqrt(2 lr decay) = {math.sqrt(2 * lr * 0.01):.3f}")
# --8<-- [end:compare]
