# --8<-- [start:divide_by_deviation]
import torch
from torch import Tensor

from snippets.layer_norm.reference import layer_norm


def divide_by_deviation(x: Tensor, eps: float) -> Tensor:
    """(x - mean) / (std + eps) with the unbiased std; x is (..., d), d > 1."""
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / (x.std(dim=-1, keepdim=True) + eps)


# --8<-- [end:divide_by_deviation]


# --8<-- [start:compare]
def show(name: str, x: Tensor) -> None:
    """Print the first feature of both results, eps 1e-5."""
    first, second = layer_norm(x), divide_by_deviation(x, 1e-5)
    print(f"{name:<16} {first[0]:9.3f} {second[0]:11.3f}")


print("input            layer_norm   deviation")
show("1, 0, 0, 0", torch.tensor([1.0, 0.0, 0.0, 0.0]))
for d in (8, 64, 4096):
    half = torch.ones(d // 2, dtype=torch.float64)
    show(f"1 and -1, d={d}", torch.cat([half, -half]))
for size in (1e-2, 1e-3, 1e-5):
    show(f"d=4096, {size:.0e}", size * torch.cat([half, -half]))
# --8<-- [end:compare]
