import torch

from snippets.triton_rms_norm.device import device
from snippets.triton_rms_norm.formula import formula
from snippets.triton_rms_norm.operator import rms_norm

LIMITS = {torch.float32: 5e-7, torch.bfloat16: 4e-3, torch.float16: 5e-4}
SHAPES = ((7, 5), (3, 4, 128), (33, 64), (1, 1009), (40, 1100))


def run(norm, x, gain, dy):
    """y, and the gradients of x and gain for the slopes dy."""
    x, gain = (t.detach().requires_grad_() for t in (x, gain))
    y = norm(x, gain, 1e-6)
    return [y.detach(), *torch.autograd.grad(y, (x, gain), dy)]


torch.manual_seed(0)
for dtype, limit in LIMITS.items():
    worst, repeats = [0.0, 0.0, 0.0], True
    for *batch, width in SHAPES:
        x = (2 * torch.randn(*batch, width, device=device) + 0.5).to(dtype)
        gain = torch.randn(width, device=device).to(dtype)
        dy = torch.randn(x.shape, device=device).to(dtype)
        found = run(rms_norm, x, gain, dy)
        wide = (t.double() for t in (x, gain, dy))
        wanted = run(formula, *wide)
        for i, (ours, right) in enumerate(zip(found, wanted, strict=True)):
            gap = float((ours - right).norm() / right.norm())
            worst[i] = max(worst[i], gap)
        again = run(rms_norm, x, gain, dy)
        repeats &= all(map(torch.equal, found, again))
    passed = [gap < limit for gap in worst]
    print(dtype, f"within {limit:g}:", *passed)
    print("the same bits again:", repeats)
