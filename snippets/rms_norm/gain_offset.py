# --8<-- [start:rms_norm_offset]
import torch
from torch import Tensor, nn

from snippets.rms_norm.reference import rms_norm


def rms_norm_offset(x: Tensor, offset: Tensor, eps: float = 1e-6) -> Tensor:
    """rms_norm with the gain stored as its distance from one.

    x is (..., d), offset is (d,) and starts at zero. The sum 1 + offset is
    float32 (float64 for float64 input): in bfloat16 it would round.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    return rms_norm(x, 1 + offset.to(wide), eps)


# --8<-- [end:rms_norm_offset]


# --8<-- [start:decay]
plain = nn.Parameter(torch.ones(8))
offset = nn.Parameter(torch.zeros(8))
generator = torch.Generator().manual_seed(0)
features = torch.randn(4, 8, generator=generator)
same = torch.equal(rms_norm(features, plain), rms_norm_offset(features, offset))
print("at the start: the same output, bit for bit:", same)

optimizer = torch.optim.AdamW([plain, offset], lr=1e-2, weight_decay=0.1)
for parameter in (plain, offset):
    parameter.grad = torch.zeros(8)  # no gradient: only weight decay acts
for _ in range(2000):
    optimizer.step()
print(f"gain after decay alone: gamma {plain[0]:.3f}", end="   ")
print(f"1 + gamma {1 + offset[0]:.3f}")

one = torch.tensor(1.0, dtype=torch.bfloat16)
small = torch.tensor(0.001, dtype=torch.bfloat16)
for value in (one, small):
    step = torch.nextafter(value, 2 * one) - value
    print(f"next bfloat16 number above {value:.3f}: {step:.1e} away")
total = {"gamma": one.clone(), "1 + gamma": torch.zeros_like(one)}
for value in total.values():
    for _ in range(100):
        value += small
print(f"100 steps of 0.001: gamma {total['gamma']:.3f}", end="   ")
print(f"1 + gamma {1 + total['1 + gamma'].float():.3f}")
# --8<-- [end:decay]
