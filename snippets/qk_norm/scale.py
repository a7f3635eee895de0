import torch

from snippets.qk_norm.entropy import attention_entropy
from snippets.qk_norm.norms import l2_norm
from snippets.rms_norm.reference import rms_norm

width, keys = 64, 128
generator = torch.Generator().manual_seed(0)
k = torch.randn(keys, width, generator=generator).double()
q = k + 0.5 * torch.randn(keys, width, generator=generator).double()
own = torch.arange(keys)  # each query resembles one key

rules = {
    "RMSNorm, 1 / sqrt(64)": (rms_norm, width**-0.5),
    "L2, scale 1 / sqrt(64)": (l2_norm, width**-0.5),
    "L2, scale 1": (l2_norm, 1.0),
    "L2, scale sqrt(64)": (l2_norm, width**0.5),
    "L2, scale 20": (l2_norm, 20.0),
}
print("norm and scale           entropy   weight of the right key")
for name, (norm, scale) in rules.items():
    logits = norm(q) @ norm(k).mT * scale
    right = logits.softmax(dim=-1)[own, own].mean()
    print(f"{name:24} {attention_entropy(logits).mean():7.3f} {right:25.3f}")
uniform = torch.tensor(float(keys)).log()
print(f"{'uniform':24} {uniform:7.3f} {1 / keys:25.3f}")
