import torch
from torch.nn.functional import layer_norm


def rms_norm(x, gain, eps=1e-6):
    wide = x.float()  # (1)!
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    normed = wide * torch.rsqrt(mean_square + eps)  # (2)!
    return (gain * normed).to(x.dtype)


x = torch.tensor([3.0, -1.0, 4.0, -2.0])
print(f"{x.var(correction=0):.1f}  {x.square().mean():.1f}")
for row in (x, x + 10):  # (3)!
    print("LayerNorm", *(f"{y:.3f}" for y in layer_norm(row, (4,))))
    print("RMSNorm  ", *(f"{y:.3f}" for y in rms_norm(row, torch.ones(4))))
