import torch
from torch import Tensor


def rms_norm_naive(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """RMSNorm of x (..., d) with gain (d,), each step stored in x.dtype.

    No upcast: shown for what goes wrong in float16 and bfloat16.
    """
    mean_square = (x * x).mean(dim=-1, keepdim=True)  # (1)!
    return x / torch.sqrt(mean_square + eps) * gain
