import torch

from snippets.qk_norm.rope import rotate
from snippets.qk_norm_rope.device import device
from snippets.qk_norm_rope.operator import angles, qk_norm_rope
from snippets.rms_norm.reference import rms_norm

LIMITS = {torch.float32: 1.5e-6, torch.bfloat16: 4e-3, torch.float16: 5e-4}


def formula(x, gain, eps=1e-6):
    """Two steps, as on the pages that introduce them."""
    normed = rms_norm(x, gain, eps)
    return rotate(normed.transpose(1, 2)).transpose(1, 2)


def run(function, x, gain, dy):
    """y, and the gradients of x and gain for the slopes dy."""
    x, gain = (t.detach().requires_grad_() for t in (x, gain))
    y = function(x, gain)
    return [y.detach(), *torch.autograd.grad(y, (x, gain), dy)]


def errors(found, wanted):
    """Distances from the float64 results, as shares of their norms."""
    return [
        float((ours - right).norm() / right.norm())
        for ours, right in zip(found, wanted, strict=True)
    ]


torch.manual_seed(0)
for dtype, limit in LIMITS.items():
    passed = []
    for heads, width in ((1, 6), (3, 64), (4, 128), (2, 192)):
        packed = torch.randn(2, 9, heads + 2, width, device=device).to(dtype)
        x = packed[:, :, :heads]  # the queries: a view with gaps
        gain = torch.randn(width, device=device).to(dtype)
        dy = torch.randn(x.shape, device=device).to(dtype)
        tables = angles(9, width, device=device)
        wide = [t.double() for t in (x, gain, dy)]
        found = run(lambda x, g, t=tables: qk_norm_rope(x, g, *t), x, gain, dy)
        wanted = run(formula, *wide)
        passed += [gap < limit for gap in errors(found, wanted)]
    print(f"{dtype}: y, dx, dgain within {limit:g}: {all(passed)}")

x, gain, dy = (t.half() for t in (x, gain, dy))
wanted = run(formula, *(t.double() for t in (x, gain, dy)))
one = run(lambda x, g: qk_norm_rope(x, g, *tables), x, gain, dy)
two = run(formula, x, gain, dy)
for name, found in (("one kernel", one), ("two steps", two)):
    y, dx, _ = errors(found, wanted)
    print(f"float16, {name}: y off by {y:.1e}, dx by {dx:.1e}")
