# --8<-- [start:rms_norm]
import torch
from torch import Tensor, nn


def rms_norm(
    x: Tensor, gain: Tensor | None = None, eps: float = 1e-6
) -> Tensor:
    """Divide each vector by its root mean square, then apply the gain.

    x is (..., d) in any floating dtype and is not modified; gain is (d,) or
    None. The arithmetic is float32 (float64 for float64 input); the result
    has x's shape and dtype. Zhang & Sennrich (2019), with eps inside the
    root.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))  # (1)!
    mean_square = wide.square().mean(dim=-1, keepdim=True)  # (..., 1)
    y = wide * torch.rsqrt(mean_square + eps)
    if gain is not None:
        y = y * gain.to(wide.dtype)
    return y.to(x.dtype)  # (2)!


# --8<-- [end:rms_norm]


# --8<-- [start:RMSNorm]
class RMSNorm(nn.Module):
    """rms_norm over the last dimension with a learned gain of shape (d,)."""

    def __init__(self, d: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.gain, self.eps)


# --8<-- [end:RMSNorm]
