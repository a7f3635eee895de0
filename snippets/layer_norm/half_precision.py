import torch
from torch import Tensor
from torch.nn import functional as F


def narrow(x: Tensor) -> Tensor:
    """LayerNorm whose every step rounds to x's dtype; no gain, no bias."""
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(variance + 1e-5)


generator = torch.Generator().manual_seed(0)
x = torch.randn(256, 96, generator=generator)
print("                 as rounded   output RMS")
print("                 float32      torch  narrow")
for dtype, size in (
    (torch.bfloat16, 1),
    (torch.float16, 1),
    (torch.float16, 300),
):
    tokens = (size * x).to(dtype)
    theirs = F.layer_norm(tokens, (96,))
    rounded = F.layer_norm(tokens.float(), (96,)).to(dtype)
    same = (theirs == rounded).double().mean() > 0.999
    rms = [y.double().square().mean().sqrt() for y in (theirs, narrow(tokens))]
    name = f"{dtype}, x {size}".removeprefix("torch.")
    print(f"{name:<16} {bool(same)!s:<11} {rms[0]:6.2f} {rms[1]:7.2f}")

ones = torch.ones(96, dtype=torch.bfloat16)
saved = torch.native_layer_norm(x.bfloat16(), (96,), ones, ones, 1e-5)[1:]
print("kept for backward on the CPU:", saved[0].dtype)
