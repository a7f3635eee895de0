import torch

from snippets.norm_family.family import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from snippets.norm_family.normalize import normalize

torch.manual_seed(0)
x = torch.randn(3, 8, 5, dtype=torch.float64) + 2  # (N, C, L)
gain, bias = torch.rand(2, 8, dtype=torch.float64)


def show(claim: str, a: torch.Tensor, b: torch.Tensor) -> None:
    """Print whether a and b are the same to 1e-12."""
    same = bool((a - b).abs().max() < 1e-12)
    print(f"{claim:<36}{'same' if same else 'not'}")


one = group_norm(x, 1, gain, bias)
whole = normalize(x, (1, 2)) * gain[:, None] + bias[:, None]
tokenwise = layer_norm(x.mT, gain, bias).mT
show("GroupNorm(1), LayerNorm over (C, L)", one, whole)
show("GroupNorm(1), Transformer LayerNorm", one, tokenwise)
short = x[..., :1]  # a single position
tokenwise = layer_norm(short.mT, gain, bias).mT
show("  the same two, if L = 1", group_norm(short, 1, gain, bias), tokenwise)
each = instance_norm(x, gain, bias)
show("GroupNorm(C), InstanceNorm", group_norm(x, 8, gain, bias), each)
alone = x[:1]
batch = batch_norm(alone, gain, bias)
show(
    "BatchNorm if N = 1, InstanceNorm", batch, instance_norm(alone, gain, bias)
)

tokens = x.mT  # (N, L, d), d = 8
scale_norm = 3.0 * tokens / tokens.norm(dim=-1, keepdim=True)
one_gain = torch.full((8,), 3.0 / 8**0.5, dtype=torch.float64)
show(
    "ScaleNorm(3), RMSNorm(3 / sqrt d)",
    rms_norm(tokens, one_gain, 0),
    scale_norm,
)
heads = tokens.unflatten(-1, (2, 4))  # 2 heads of 4 features
per_head = normalize(heads, (-1,), centre=False).flatten(-2)
whole = normalize(tokens, (-1,), centre=False)
show("RMSNorm per head, over the width", per_head, whole)
