import torch
from torch import Tensor


def batch_norm(
    x: Tensor,
    gain: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """x is (n, d). Ioffe & Szegedy (2015), algorithms 1 and 2."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if training:
        n = len(x)
        if n < 2:
            raise ValueError("one sample has no variance to train with")
        var, mean = torch.var_mean(wide, dim=0, correction=0)
        with torch.no_grad():
            running_mean.lerp_(mean, momentum)
            running_var.lerp_(var * n / (n - 1), momentum)
    else:
        mean, var = running_mean, running_var
    y = (wide - mean) * torch.rsqrt(var + eps)
    return (y * gain + bias).to(x.dtype)
