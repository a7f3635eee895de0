import torch
from torch import Tensor


def image_batch_norm(
    x: Tensor,
    gain: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """x is (n, c, h, w): one mean and one variance a channel."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if training:
        count = x.numel() // x.shape[1]  # n h w values a channel
        var, mean = torch.var_mean(wide, dim=(0, 2, 3), correction=0)
        with torch.no_grad():
            running_mean.lerp_(mean, momentum)
            running_var.lerp_(var * count / (count - 1), momentum)
    else:
        mean, var = running_mean, running_var
    mean, r, gain, bias = (
        each[:, None, None]
        for each in (mean, torch.rsqrt(var + eps), gain, bias)
    )
    return ((wide - mean) * r * gain + bias).to(x.dtype)
