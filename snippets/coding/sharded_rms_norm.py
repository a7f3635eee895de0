from collections.abc import Sequence

import torch
from torch import Tensor


def sharded_rms_norm(
    shards: Sequence[Tensor], gains: Sequence[Tensor], eps: float = 1e-6
) -> list[Tensor]:
    """Shard i is (..., d_i). Sums of squares add up, roots do not."""
    precision = torch.promote_types(shards[0].dtype, torch.float32)
    wide = [shard.to(precision) for shard in shards]
    local = [each.square().sum(dim=-1, keepdim=True) for each in wide]
    d = sum(shard.shape[-1] for shard in shards)
    r = torch.rsqrt(sum(local) / d + eps)  # the sum is the all-reduce
    return [
        (each * r * gain).to(shard.dtype)
        for shard, each, gain in zip(shards, wide, gains, strict=True)
    ]
