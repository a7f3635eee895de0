import copy

import torch

from snippets.normformer.block import Attention

torch.manual_seed(0)
attention = Attention(d=24, heads=4, scale_heads=True).double()
with torch.no_grad():
    attention.head_scale.copy_(torch.tensor([0.5, 1.0, 2.0, 3.0]))
features = torch.randn(2, 5, 24).double()
output = attention(features)


def largest_gap(other: torch.Tensor) -> float:
    """Largest difference from output, relative to output's rms."""
    return ((other - output).abs().max() / output.square().mean().sqrt()).item()


folded = copy.deepcopy(attention)
with torch.no_grad():
    scale = folded.head_scale.repeat_interleave(24 // 4)
    folded.out.weight.mul_(scale)  # W^O transposed: its rows are columns
    folded.head_scale.fill_(1)
same = largest_gap(folded(features)) < 1e-12
print("folded into out.weight: same output:", same)

plain = copy.deepcopy(attention)
with torch.no_grad():
    plain.head_scale.fill_(1)
after = plain(features).unflatten(-1, (4, -1)) * attention.head_scale[:, None]
gap = largest_gap(after.flatten(start_dim=2))
print(f"after out, as in fairseq: off by {gap:.1f} rms")

doubled = copy.deepcopy(attention)
with torch.no_grad():
    doubled.head_scale.mul_(2)
    doubled.out.bias.mul_(2)
norm = torch.nn.LayerNorm(24, eps=0.0).double()
same = bool((norm(doubled(features)) - norm(output)).abs().max() < 1e-12)
print("all doubled, then LayerNorm: same output:", same)
