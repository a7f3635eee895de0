import torch
from torch.nn import functional as F

from snippets.triton_layer_norm.device import device
from snippets.triton_layer_norm.operator import layer_norm

LIMITS = {torch.float32: 1e-6, torch.bfloat16: 4e-3, torch.float16: 5e-4}
SHAPES = ((7, 5), (3, 4, 128), (33, 64), (1, 1009), (40, 1100))


def formula(x, gain, bias, eps):
    """torch's own, for inputs in float64."""
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


def run(norm, x, gain, bias, dy):
    """y, and the gradients of x, gain and bias for the slopes dy."""
    inputs = [t.detach().requires_grad_() for t in (x, gain, bias)]
    y = norm(*inputs, 1e-5)
    return [y.detach(), *torch.autograd.grad(y, inputs, dy)]


def gate(dtype, affine_dtype, limit):
    """Whether y, dx, dgain and dbias are near enough, and repeat."""
    near, repeats = [True] * 4, True
    for *batch, width in SHAPES:
        x = (2 * torch.randn(*batch, width, device=device) + 3).to(dtype)
        affine = torch.randn(2, width, device=device).to(affine_dtype)
        dy = torch.randn(x.shape, device=device).to(dtype)
        found = run(layer_norm, x, *affine, dy)
        wide = [t.double() for t in (x, *affine, dy)]
        for i, right in enumerate(run(formula, *wide)):
            gap = float((found[i] - right).norm() / right.norm())
            near[i] &= gap < limit  # False for NaN as well
        again = run(layer_norm, x, *affine, dy)
        repeats &= all(map(torch.equal, found, again))
    return near, repeats


torch.manual_seed(0)
for dtype, limit in LIMITS.items():
    for affine_dtype in sorted({dtype, torch.float32}, key=str):
        near, repeats = gate(dtype, affine_dtype, limit)
        names = [str(each)[6:] for each in (dtype, affine_dtype)]
        print(f"{names[0]}, gain {names[1]}, within {limit:g}:")
        print(" ", *near, "repeats:", repeats)
