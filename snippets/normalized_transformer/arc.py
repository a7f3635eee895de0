import torch

from snippets.normalized_transformer.sphere import slerp, step_towards, unit

generator = torch.Generator().manual_seed(0)
h, target = unit(torch.randn(2, 512, generator=generator, dtype=torch.float64))


def degrees(a: torch.Tensor, b: torch.Tensor) -> float:
    return torch.rad2deg(torch.arccos((a * b).sum().clamp(-1, 1))).item()


print(f"from h to target: {degrees(h, target):.1f} degrees")
print("alpha   moved by the step   moved by slerp   step off the arc")
for alpha in (0.01, 0.05, 0.2, 0.5, 1.0):
    step = step_towards(h, target, alpha)
    exact = slerp(h, target, alpha)
    off = degrees(step, h) + degrees(step, target) - degrees(h, target)
    print(
        f"{alpha:5.2f} {degrees(step, h):19.2f} {degrees(exact, h):16.2f}"
        f" {abs(off):18.2f}"
    )
uneven = torch.rand(512, generator=generator, dtype=torch.float64)
step = step_towards(h, target, uneven)
off = degrees(step, h) + degrees(step, target) - degrees(h, target)
print(f"one alpha per feature: off the arc by {off:.2f}")
