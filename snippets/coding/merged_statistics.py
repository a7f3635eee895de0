from torch import Tensor


def merged_statistics(
    counts: Tensor, means: Tensor, variances: Tensor
) -> tuple[Tensor, Tensor]:
    """means is (shards, d). Chan, Golub & LeVeque (1979), for many parts."""
    share = (counts.to(means.dtype) / counts.sum())[:, None]  # (shards, 1)
    mean = (share * means).sum(dim=0)
    between = (means - mean).square()
    return mean, (share * (variances + between)).sum(dim=0)
