import torch
from torch import Tensor

from snippets.low_precision.naive import rms_norm_naive
from snippets.rms_norm.reference import rms_norm


def relative_error(y: Tensor, x: Tensor, gain: Tensor, eps: float) -> float:
    """Distance of y from RMSNorm in float64, relative to the latter."""
    x, gain = x.double(), gain.double()
    exact = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain
    return ((y.double() - exact).norm() / exact.norm()).item()


generator = torch.Generator().manual_seed(0)
base = torch.randn(256, 512, generator=generator)
profile = 0.5 + torch.rand(512, generator=generator)

print("input RMS   fp16: naive   upcast   bf16: naive   upcast")
for size in (1e-4, 1e-2, 1.0, 1e2, 1e4):
    cells = []
    for dtype in (torch.float16, torch.bfloat16):
        x, gain = (size * base).to(dtype), profile.to(dtype)
        for method in (rms_norm_naive, rms_norm):
            y = method(x, gain, 1e-12)
            cells.append(f"{relative_error(y, x, gain, 1e-12):.1e}")
    line = "{:>13} {:>8} {:>13} {:>8}".format(*cells)
    print(f"{size:<9.0e} {line}")
