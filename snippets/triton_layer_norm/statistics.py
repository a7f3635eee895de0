import torch

from snippets.triton_layer_norm.device import device
from snippets.triton_layer_norm.operator import (
    layer_norm_backward_op,
    layer_norm_op,
)

half = torch.bfloat16
torch.manual_seed(0)
noise = torch.randn(64, 256, device=device)
gain = torch.randn(256, device=device).to(half)
dy = torch.randn(64, 256, device=device).to(half)

print("relative error of    dx   dgain   dbias")
for mean in (0, 10):
    x = (noise + mean).to(half)
    _, *saved = layer_norm_op(x, gain, gain, 1e-5)
    rounded = [each.to(half).float() for each in saved]
    wide = [each.double() for each in (dy, x, gain)]
    middle = wide[1].mean(dim=-1)
    scale = (wide[1].var(dim=-1, correction=0) + 1e-5).rsqrt()
    unit = (wide[1] - middle[:, None]) * scale[:, None]
    slope = wide[0] * wide[2]
    along = (slope * unit).mean(dim=-1, keepdim=True)
    level = slope.mean(dim=-1, keepdim=True)
    right = (
        (slope - level - unit * along) * scale[:, None],
        (wide[0] * unit).sum(dim=0),
        wide[0].sum(dim=0),
    )
    # Gradients leave in float32 here, so that only the statistics differ.
    inputs = [each.float() for each in (dy, x, gain)]
    for name, statistics in (("float32", saved), ("bfloat16", rounded)):
        found = layer_norm_backward_op(*inputs, *statistics)
        gaps = [
            float((ours - best).norm() / best.norm())
            for ours, best in zip(found, right, strict=True)
        ]
        print(f"mean {mean:2}, {name:8} " + " ".join(f"{g:7.0e}" for g in gaps))

x, gain = noise.cpu().to(half), gain.cpu()
_, mean, rstd = torch.native_layer_norm(x, (256,), gain, gain, 1e-5)
print("torch on the CPU keeps", mean.dtype)
