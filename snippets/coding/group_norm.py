import torch
from torch import Tensor


def group_norm(
    x: Tensor, groups: int, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """x is (n, channels, ...). Wu & He (2018), eq. 7."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    parts = wide.reshape(len(x), groups, -1)  # (n, groups, values)
    centred = parts - parts.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    y = (centred * torch.rsqrt(variance + eps)).reshape(x.shape)
    channels = (-1,) + (1,) * (x.ndim - 2)
    return (y * gain.reshape(channels) + bias.reshape(channels)).to(x.dtype)
