# --8<-- [start:llama_style]
import torch
from torch import Tensor


def llama_style(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """Normalize in float32, cast to x.dtype, then multiply by the gain.

    Shapes here and below: x (..., d), gain (d,), result (..., d). The result's
    dtype is what x.dtype and gain.dtype promote to.
    """
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return gain * (wide * scale).to(x.dtype)  # (1)!


# --8<-- [end:llama_style]


# --8<-- [start:gemma_style]
def gemma_style(x: Tensor, offset: Tensor, eps: float) -> Tensor:
    """Normalize and multiply by 1 + offset in float32, then cast once."""
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (wide * scale * (1.0 + offset.float())).to(x.dtype)  # (1)!


# --8<-- [end:gemma_style]


# --8<-- [start:t5_style]
def t5_style(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """Only the statistic is upcast; the cast follows the gain's dtype.

    Returns float32 for a float32 gain, otherwise the gain's half type.
    """
    mean_square = x.float().square().mean(dim=-1, keepdim=True)
    y = x * torch.rsqrt(mean_square + eps)  # (1)!
    if gain.dtype in (torch.float16, torch.bfloat16):
        y = y.to(gain.dtype)
    return gain * y


# --8<-- [end:t5_style]
