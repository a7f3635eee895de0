from torch import Tensor


def merged_statistics(
    counts: Tensor, means: Tensor, variances: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of all data, from those of its shards.

    counts is (shards,) of integers, not all zero; means and variances are
    (shards, d) in float32 or float64. Shards differ in size; an empty one
    has mean and variance zero. The results are (d,) in means' dtype. The
    mean may be large beside the deviation.
    """
    raise NotImplementedError
