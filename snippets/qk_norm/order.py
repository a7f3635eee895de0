import torch
from torch.nn import functional as F

from snippets.qk_norm.rope import rotate
from snippets.rms_norm.reference import rms_norm

width = 16
generator = torch.Generator().manual_seed(0)
head = torch.randn(12, width, generator=generator).double()  # (time, width)
gain = torch.rand(width, generator=generator).double() + 0.5
norms = {
    "RMSNorm without a gain": rms_norm,
    "RMSNorm, a gain for each feature": lambda x: rms_norm(x, gain),
    "RMSNorm, equal gains in each pair": lambda x: rms_norm(
        x, gain[: width // 2].repeat(2)
    ),
    "LayerNorm without a gain": lambda x: F.layer_norm(x, (width,)),
}
print("largest difference between norm then RoPE and RoPE then norm")
for name, norm in norms.items():
    gap = (rotate(norm(head)) - norm(rotate(head))).abs().max()
    print(f"{name:<36}{gap:.0e}" if gap > 1e-12 else f"{name:<36}none")

query, key = torch.randn(2, width, generator=generator).double()
orders = {
    "gains, then RoPE": lambda x: rotate(rms_norm(x, gain)),
    "RoPE, then gains": lambda x: rms_norm(rotate(x), gain),
}
print("logits of one query and one key, always 2 positions apart")
for name, order in orders.items():
    q, k = (order(x.expand(50, -1)) for x in (query, key))
    logits = (q @ k.mT / width**0.5).diagonal(-2)
    print(f"{name:<36}{logits.min():.2f} to {logits.max():.2f}")
