# --8<-- [start:mean_cosine]
import torch
from torch import Tensor


def mean_cosine(x: Tensor) -> Tensor:
    """Mean cosine over all pairs of different tokens, for each sequence.

    x is (..., tokens, d) with at least two tokens, none of them zero; the
    result is (...). 1: all point one way. 0: as random vectors do.
    """
    unit = x / x.norm(dim=-1, keepdim=True)
    pairs = unit @ unit.mT  # (..., tokens, tokens), ones on the diagonal
    n = x.shape[-2]
    return (pairs.sum(dim=(-2, -1)) - n) / (n * (n - 1))


# --8<-- [end:mean_cosine]


# --8<-- [start:distance_to_rank_one]
def distance_to_rank_one(x: Tensor) -> Tensor:
    """How far the tokens are from being all equal, relative to their size.

    x is (..., tokens, d); the result, in [0, 1], is (...): the Frobenius
    norm of x minus its mean token, over that of x.
    """
    apart = x - x.mean(dim=-2, keepdim=True)
    norm = torch.linalg.matrix_norm
    return norm(apart) / norm(x)


# --8<-- [end:distance_to_rank_one]
