# --8<-- [start:layer_norm]
import torch
from torch import Tensor, nn


def layer_norm(
    x: Tensor,
    gain: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Centre each vector, divide by its standard deviation, apply the affine.

    x is (..., d) in any floating dtype and is not modified; gain and bias are
    (d,) or None. The arithmetic is float32 (float64 for float64 input); the
    result has x's shape and dtype. Ba et al. (2016), eq. 3 and 4, with eps
    inside the root.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))  # (1)!
    centred = wide - wide.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)  # (2)!
    y = centred * torch.rsqrt(variance + eps)
    if gain is not None:
        y = y * gain.to(wide.dtype)
    if bias is not None:
        y = y + bias.to(wide.dtype)
    return y.to(x.dtype)


# --8<-- [end:layer_norm]


# --8<-- [start:LayerNorm]
class LayerNorm(nn.Module):
    """layer_norm over the last dimension with learned parameters of (d,).

    gain=False and bias=False leave the one or the other out.
    """

    def __init__(
        self, d: int, eps: float = 1e-5, gain: bool = True, bias: bool = True
    ) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d)) if gain else None
        self.bias = nn.Parameter(torch.zeros(d)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.gain, self.bias, self.eps)


# --8<-- [end:LayerNorm]
