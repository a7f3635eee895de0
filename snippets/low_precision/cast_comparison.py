import torch
from torch.nn import functional as F

from snippets.low_precision.cast_order import (
    gemma_style,
    llama_style,
    t5_style,
)
from snippets.low_precision.naive import rms_norm_naive
from snippets.rms_norm.reference import rms_norm

generator = torch.Generator().manual_seed(0)
batch = torch.randn(512, 1024, generator=generator).bfloat16()
weight = (0.5 + torch.rand(1024, generator=generator)).bfloat16()
offset = weight - 1  # exact in bfloat16 for weights from 0.5 to 2

exact = batch.double()
exact = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + 1e-6)
exact = exact * weight.double()
results = {
    "llama_style": llama_style(batch, weight, 1e-6),
    "gemma_style": gemma_style(batch, offset, 1e-6),
    "t5_style": t5_style(batch, weight, 1e-6),
    "rms_norm": rms_norm(batch, weight, 1e-6),
    "F.rms_norm": F.rms_norm(batch, (1024,), weight, 1e-6),
    "rms_norm_naive": rms_norm_naive(batch, weight, 1e-6),
}

print(f"{'':15} differs from Llama   not nearest   relative error")
for name, y in results.items():
    differs = (y != results["llama_style"]).double().mean()
    missed = (y != exact.bfloat16()).double().mean()
    error = (y.double() - exact).norm() / exact.norm()
    print(f"{name:15} {differs:18.0%} {missed:13.0%} {error:16.1e}")
