# --8<-- [start:sum_in_order]
import torch
from torch import Tensor

from snippets.rms_norm.reference import rms_norm


def sum_in_order(terms: Tensor) -> Tensor:
    """Add terms (n, ...) along axis 0, one by one, rounding each sum."""
    total = torch.zeros_like(terms[0])
    for term in terms:
        total = total + term
    return total


# --8<-- [end:sum_in_order]


# --8<-- [start:gain_gradient]
generator = torch.Generator().manual_seed(1)
short = (4 * torch.rand(4096, generator=generator) - 2).bfloat16()
terms = short * short  # each at most 4
print(f"sum of 4096 squares: {terms.double().sum():.0f}")
print("  one by one in bfloat16:", sum_in_order(terms).item())
print("  one by one, 4096 ones: ", sum_in_order(torch.ones_like(terms)).item())
print("  torch.sum in bfloat16: ", terms.sum().item())

states = torch.randn(8192, 64, generator=generator).bfloat16()
upstream = torch.randn(8192, 64, generator=generator).bfloat16()
products = upstream * rms_norm(states, eps=1e-6)  # (8192, 64), bfloat16
exact = products.double().sum(dim=0)
print("gain gradient over 8192 rows, relative error")
for name, total in (
    ("one by one in bfloat16", sum_in_order(products)),
    ("float32, then bfloat16", products.float().sum(0).bfloat16()),
):
    error = (total.double() - exact).norm() / exact.norm()
    print(f"  {name}: {error:.1g}")
# --8<-- [end:gain_gradient]
