import torch

from snippets.memory_bound.interpreter import device
from snippets.memory_bound.soft_cap import soft_cap


def distance(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """||found - wanted|| / ||wanted||, over the whole tensor."""
    gap = torch.linalg.vector_norm(found.double() - wanted)
    return float(gap / torch.linalg.vector_norm(wanted))


torch.manual_seed(0)
wide = 40 * torch.randn(5000, dtype=torch.float64, device=device)
slope = torch.randn_like(wide)
print("against float64  rounding alone  times that: value  gradient")
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    x, dy = (each.to(dtype) for each in (wide, slope))
    exact = x.double().requires_grad_()
    right = 30 * torch.tanh(exact / 30)
    right.backward(dy.double())
    x.requires_grad_()
    y = soft_cap(x, 30.0)
    y.backward(dy)
    right = right.detach()
    found = distance(y.detach(), right), distance(x.grad, exact.grad)
    alone = distance(right.to(dtype), right)
    times = [error / alone for error in found]  # float32: as exact as exp
    print(f"{dtype!s:15} {alone:14.1e} {times[0]:18.0f} {times[1]:9.0f}")
