import torch
from torch.nn.functional import rms_norm


def size_after(layers, factor, normed):
    torch.manual_seed(0)
    x = torch.randn(64, 512)  # (1)!
    for _ in range(layers):
        x = factor * x @ torch.randn(512, 512) / 512**0.5  # (2)!
        if normed:
            x = rms_norm(x, (512,), eps=1e-6)
    return x.square().mean().sqrt()


for factor in (0.5, 1.0, 2.0):
    plain, normed = (size_after(8, factor, on) for on in (False, True))
    print(f"factor {factor}: {plain:8.3f}   with a norm {normed:.3f}")
