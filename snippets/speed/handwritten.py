# --8<-- [start:hand_layer_norm]
import torch
from torch import Tensor


def hand_layer_norm(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """LayerNorm in separate tensor operations, as tutorials write it.

    x is (..., d) in any floating dtype, gain and bias are (d,) in the same
    dtype; the result has x's shape and dtype.
    """
    mean = x.mean(-1, keepdim=True)
    var = x.var(-1, keepdim=True, unbiased=False)  # (1)!
    return (x - mean) / torch.sqrt(var + eps) * gain + bias


def hand_rms_norm(x: Tensor, gain: Tensor, eps: float = 1e-5) -> Tensor:
    """RMSNorm in separate tensor operations, with the usual upcast.

    Shapes and dtypes as for hand_layer_norm.
    """
    wide = x.float()
    y = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return y.type_as(x) * gain


# --8<-- [end:hand_layer_norm]


# --8<-- [start:hand_layer_norm_without_var]
def hand_layer_norm_without_var(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """The same LayerNorm; the variance is a mean of squares.

    Shapes and dtypes as for hand_layer_norm.
    """
    centred = x - x.mean(-1, keepdim=True)
    var = centred.pow(2).mean(-1, keepdim=True)
    return centred / torch.sqrt(var + eps) * gain + bias


# --8<-- [end:hand_layer_norm_without_var]
