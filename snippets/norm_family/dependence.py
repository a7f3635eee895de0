import torch

from snippets.norm_family.family import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)

torch.manual_seed(0)
x = torch.randn(3, 8, 5, dtype=torch.float64)  # (N, C, L)
gain, bias = torch.ones(8), torch.zeros(8)
norms = {
    "BatchNorm": lambda x: batch_norm(x, gain, bias),
    "InstanceNorm": lambda x: instance_norm(x, gain, bias),
    "GroupNorm, 4": lambda x: group_norm(x, 4, gain, bias),
    "GroupNorm, 1": lambda x: group_norm(x, 1, gain, bias),
    "LayerNorm": lambda x: layer_norm(x.mT, gain, bias).mT,
    "RMSNorm": lambda x: rms_norm(x.mT, gain).mT,
}
others = {
    "sample": (-1, 0, 0),
    "ch. 2": (0, 1, 0),
    "ch. 8": (0, -1, 0),
    "place": (0, 0, -1),
}

print(f"{'cell 0 sees':<14}" + "".join(f"{name:>7}" for name in others))
for name, norm in norms.items():
    row = ""
    for cell in others.values():
        changed = x.clone()
        changed[cell] += 10
        moved = norm(changed)[0, 0, 0] != norm(x)[0, 0, 0]
        row += f"{'yes' if moved else '-':>7}"
    print(f"{name:<14}{row}")
