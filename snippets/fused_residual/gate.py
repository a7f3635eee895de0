import torch

from snippets.fused_residual.device import device
from snippets.fused_residual.operator import add_rms_norm
from snippets.triton_rms_norm.formula import formula
from snippets.triton_rms_norm.operator import rms_norm

LIMITS = {torch.float32: 1e-6, torch.bfloat16: 1.2e-2, torch.float16: 1e-3}
SHAPES = ((7, 5), (3, 4, 128), (40, 1100), (2, 33_001))


def in_two_steps(x, branch, gain, eps):
    stream = x + branch
    return stream, formula(stream, gain, eps)


def run(function, x, branch, gain, slopes):
    """Stream and y, then the gradients of x, branch and gain."""
    inputs = [t.detach().requires_grad_() for t in (x, branch, gain)]
    outputs = function(*inputs, 1e-6)
    found = torch.autograd.grad(outputs, inputs, slopes)
    return [*(y.detach() for y in outputs), *found]


torch.manual_seed(0)
for dtype, limit in LIMITS.items():
    worst, repeats, own = [0.0] * 5, True, True
    for shape in SHAPES:
        drawn = torch.randn(4, *shape, device=device).to(dtype)
        x, branch, *slopes = drawn
        gain = torch.randn(shape[-1], device=device).to(dtype)
        found = run(add_rms_norm, x, branch, gain, slopes)
        exact = [t.double() for t in (x, branch, gain)]
        wanted = run(in_two_steps, *exact, [t.double() for t in slopes])
        for i, (ours, right) in enumerate(zip(found, wanted, strict=True)):
            gap = float((ours - right).norm() / right.norm())
            worst[i] = max(worst[i], gap)
        again = run(add_rms_norm, x, branch, gain, slopes)
        repeats &= all(map(torch.equal, found, again))
        own &= torch.equal(rms_norm(found[0], gain, 1e-6), found[1])
    print(dtype, f"within {limit:g}:", *(gap < limit for gap in worst))
    print("  again:", repeats, " y is N(stream):", own)
