from collections.abc import Sequence

from torch import Tensor


def sharded_rms_norm(
    shards: Sequence[Tensor], gains: Sequence[Tensor], eps: float = 1e-6
) -> list[Tensor]:
    """RMSNorm of one tensor whose features lie on several ranks.

    Shard i is (..., d_i) and gains[i] is (d_i,), all in one dtype; widths
    may differ. Computes in float32 or wider. Returns each rank's part of the
    result, in the shards' dtype. What ranks exchange is one number a token,
    no features: a Python sum over the shards plays the all-reduce.
    """
    raise NotImplementedError
