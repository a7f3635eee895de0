# --8<-- [start:sharded_rms_norm]
import torch
from torch import Tensor

from snippets.rms_norm.reference import rms_norm


def sharded_rms_norm(shards: list[Tensor], eps: float = 1e-6) -> list[Tensor]:
    """RMSNorm, without a gain, of one vector that lies on several devices.

    shards are (..., d_i) each, in float32 or float64. The sum is what an
    all-reduce would carry: one number per token and device.
    """
    squares = [shard.square().sum(dim=-1, keepdim=True) for shard in shards]
    mean_square = sum(squares) / sum(shard.shape[-1] for shard in shards)
    return [shard * torch.rsqrt(mean_square + eps) for shard in shards]


# --8<-- [end:sharded_rms_norm]


# --8<-- [start:compare]
generator = torch.Generator().manual_seed(0)
sizes = torch.tensor([0.1, 1.0, 1.0, 10.0]).double()
heads = sizes[:, None] * torch.randn(50, 4, 16, generator=generator).double()


def sizes_of(x: Tensor) -> str:
    return "  ".join(f"{s:5.2f}" for s in x.square().mean(dim=(0, 2)).sqrt())


whole = rms_norm(heads.flatten(1))
print("RMS of the four heads   ", sizes_of(heads))
print("normed each alone       ", sizes_of(rms_norm(heads)))
print("normed as one vector    ", sizes_of(whole.unflatten(1, (4, 16))))

left, right = heads[:, :2], heads[:, 2:]  # two devices, two heads each
alone = torch.cat((rms_norm(left), rms_norm(right)), dim=1)
same = torch.allclose(alone, rms_norm(heads))
print("each alone, on two devices: the same:", same)
shards = [left.flatten(1), right.flatten(1)]
local = torch.cat([rms_norm(shard) for shard in shards], dim=1)
gap = (local - whole).abs().max()
print(f"one vector, each device its own statistic: off by {gap:.1f}")
same = torch.allclose(torch.cat(sharded_rms_norm(shards), dim=1), whole)
print("one vector, squares summed over devices: the same:", same)
# --8<-- [end:compare]
