import torch
from torch import nn

from snippets.rms_norm.reference import RMSNorm

torch.manual_seed(0)
ours, theirs = RMSNorm(48, eps=1e-6), nn.RMSNorm(48, eps=1e-6)
with torch.no_grad():
    ours.gain.uniform_(0.5, 1.5)
    theirs.weight.copy_(ours.gain)

tokens = torch.randn(2, 5, 48)
gap = (ours(tokens) - theirs(tokens)).abs().max()
print("differ by less than 1e-5:", bool(gap < 1e-5))

theirs.eps = None  # the default
faint = 1e-4 * tokens
gap = (ours(faint) - theirs(faint)).abs().max()
print(f"eps left to the default, faint input: differ by {gap:.2f}")
