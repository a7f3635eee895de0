import torch
from torch.nn.functional import rms_norm

logits = torch.tensor([2.0, 1.0, 0.0])
for scale in (1, 4, 16):
    p = (scale * logits).softmax(-1)
    entropy = torch.special.entr(p).sum()  # (1)!
    weights = "  ".join(f"{weight:.3f}" for weight in p)
    print(f"times {scale:2}: {weights}  entropy {entropy:.3f}")

torch.manual_seed(0)
q, k = 16 * torch.randn(2, 1000, 64)  # (2)!
for a, b in ((q, k), (rms_norm(q, (64,)), rms_norm(k, (64,)))):
    print(f"largest logit {(a @ b.T / 64**0.5).abs().max():.1f}")
