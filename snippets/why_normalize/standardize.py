import torch
from torch import Tensor


def standardize(
    x: Tensor,
    dim: int | tuple[int, ...] = -1,
    correction: int = 0,
    eps: float = 0.0,
) -> Tensor:
    """z-scores over dim: (x - mean) / √(variance + eps).

    correction=0 divides the sum of squares by n (population), 1 by n - 1
    (sample). x holds floats. The arithmetic is float32 (float64 for float64
    input); the result has the shape and dtype of x. Equal values give NaN
    if eps is 0.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    variance, mean = torch.var_mean(
        wide, dim=dim, correction=correction, keepdim=True
    )
    return ((wide - mean) * torch.rsqrt(variance + eps)).to(x.dtype)
