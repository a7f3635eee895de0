import torch
from torch.nn import functional as F

from snippets.norm_family.family import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)

torch.manual_seed(0)
x = torch.randn(3, 8, 5, dtype=torch.float64) + 2  # (N, C, L)
gain, bias = torch.rand(2, 8, dtype=torch.float64)
affine = {"weight": gain, "bias": bias}
tokens = x.mT  # (N, L, C): features last, as a Transformer has them

pairs = {
    "batch_norm": (
        batch_norm(x, gain, bias),
        F.batch_norm(x, None, None, **affine, training=True),
    ),
    "instance_norm": (
        instance_norm(x, gain, bias),
        F.instance_norm(x, **affine),
    ),
    "group_norm": (
        group_norm(x, 4, gain, bias),
        F.group_norm(x, 4, **affine),
    ),
    "layer_norm": (
        layer_norm(tokens, gain, bias),
        F.layer_norm(tokens, (8,), **affine),
    ),
    "rms_norm": (
        rms_norm(tokens, gain),
        F.rms_norm(tokens, (8,), gain, eps=1e-6),
    ),
}
for name, (ours, theirs) in pairs.items():
    same = bool((ours - theirs).abs().max() < 1e-12)
    print(f"{name:<14} as in torch to 1e-12: {same}")
