import torch
from torch import Tensor


def masked_batch_norm(
    x: Tensor, mask: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """x is (batch, time, d), mask is (batch, time)."""
    real = mask[..., None]
    n = mask.sum()
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    wide = torch.where(real, wide, 0)  # 0 * NaN would be NaN
    mean = wide.sum(dim=(0, 1)) / n
    centred = torch.where(real, wide - mean, 0)
    variance = centred.square().sum(dim=(0, 1)) / n
    y = centred * torch.rsqrt(variance + eps) * gain + bias
    return torch.where(real, y, 0).to(x.dtype)
