import torch
from torch import Tensor


def normalize(
    x: Tensor, axes: tuple[int, ...], centre: bool = True, eps: float = 1e-5
) -> Tensor:
    """Divide by the root mean square over axes, after centring if asked for.

    The cells that differ only in axes share one mean and one scale. x has
    any shape; the result has the same shape, in float32 (float64 for
    float64 input).
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if centre:
        wide = wide - wide.mean(axes, keepdim=True)
    return wide * torch.rsqrt(wide.square().mean(axes, keepdim=True) + eps)
