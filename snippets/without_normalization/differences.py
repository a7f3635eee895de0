import torch

from snippets.rms_norm.reference import RMSNorm
from snippets.without_normalization.reference import DynamicTanh

generator = torch.Generator().manual_seed(0)
token = torch.randn(512, generator=generator, dtype=torch.float64)
layers = {"RMSNorm": RMSNorm(512).double(), "DyT": DynamicTanh(512).double()}
readout = torch.randn(512, generator=generator, dtype=torch.float64)

print("input RMS    output RMS          length of the gradient")
print("             RMSNorm     DyT         RMSNorm       DyT")
for size in (0.01, 0.1, 1.0, 10.0, 100.0):
    cells = []
    for layer in layers.values():
        x = (size * token).requires_grad_()
        y = layer(x)
        (grad,) = torch.autograd.grad(y @ readout, x)
        cells.append((y.square().mean().sqrt(), grad.norm()))
    (a, grad_a), (b, grad_b) = cells
    print(f"{size:9.2f} {a:10.3f} {b:7.3f} {grad_a:15.3g} {grad_b:9.3g}")

louder = token.clone()
louder[0] = 100.0  # one feature changes; look at the other 511
for name, layer in layers.items():
    change = (layer(louder) - layer(token))[1:].abs().max()
    print(f"{name}: another feature moves by up to {change:.2f}")
