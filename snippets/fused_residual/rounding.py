import torch
from torch import Tensor

from snippets.fused_residual.device import device
from snippets.triton_rms_norm.formula import formula


def rounded_first(x: Tensor, branch: Tensor, gain: Tensor):
    """As two kernels do it, and as the kernel of this page does it."""
    stream = x + branch
    return stream, formula(stream, gain)


def rounded_last(x: Tensor, branch: Tensor, gain: Tensor):
    """The norm reads the float32 sum, the next layer the rounded one."""
    wide = x.float() + branch.float()
    return wide.to(x.dtype), formula(wide, gain).to(x.dtype)


torch.manual_seed(0)
stack = torch.randn(24, 256, 256, device=device) / 16
gain = (1 + torch.randn(256, device=device) / 4).bfloat16()
x = torch.randn(64, 256, device=device).bfloat16()


def distance(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted.double()).norm() / wanted.norm())


one = {}
for function in (rounded_first, rounded_last):
    stream, y = function(x, x.roll(1, 0), gain)
    again = torch.equal(formula(stream, gain), y)
    print(f"{function.__name__}: y is N(stream): {again}")
    one[function] = y
first, last = one.values()
share = float((first != last).float().mean())
print(f"elements of y that differ: {share:.0%}")

normed = {}
exact, wide = x.double(), formula(x.double(), gain.double())
for matrix in stack.bfloat16():
    branch = torch.tanh(wide @ matrix.double())
    exact, wide = rounded_first(exact, branch, gain.double())
for function in (rounded_first, rounded_last):
    stream, y = x, formula(x, gain)
    for matrix in stack.bfloat16():
        branch = torch.tanh(y.float() @ matrix.float())
        stream, y = function(stream, branch.bfloat16(), gain)
    normed[function] = y
print("after 24 layers")
for function, y in normed.items():
    print(f"  {function.__name__} from float64: {distance(y, wide):.3f}")
print(f"  from each other: {distance(*normed.values()):.3f}")
