# --8<-- [start:normalize]
import torch
from torch import Tensor, nn


def normalize(x: Tensor, mean: Tensor, var: Tensor, norm: nn.Module) -> Tensor:
    """(x - mean) / sqrt(var + eps), then norm's gain and bias.

    x is (..., d); mean and var broadcast against it. The arithmetic is
    float32 (float64 for float64 input); the result has x's dtype.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    y = (x.to(wide) - mean) * torch.rsqrt(var.to(wide) + norm.eps)
    return (y * norm.gain + norm.bias).to(x.dtype)


# --8<-- [end:normalize]


# --8<-- [start:LayerNorm]
class LayerNorm(nn.Module):
    """Each token by its own d features. Ba et al. (2016), eps in the root.

    x is (..., d) in any floating dtype. The statistics are float32 (float64
    for float64 input).
    """

    def __init__(self, d: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        var, mean = torch.var_mean(wide, -1, correction=0, keepdim=True)
        return normalize(x, mean, var, self)  # mean and var are (..., 1)


# --8<-- [end:LayerNorm]


# --8<-- [start:BatchNorm]
class BatchNorm(nn.Module):
    """Each feature by all tokens. Ioffe & Szegedy (2015), algorithms 1, 2.

    x is (..., d) in any floating dtype, with at least one dimension before
    the features: all of them are pooled. ValueError in train mode if there
    is a single token. The statistics of a batch are float32 (float64 for
    float64 input); keep the running ones in float32 too.
    """

    def __init__(
        self, d: int, eps: float = 1e-5, momentum: float = 0.1
    ) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.gain = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))
        self.register_buffer("running_mean", torch.zeros(d))  # (1)!
        self.register_buffer("running_var", torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        mean, var = self.statistics(x.flatten(end_dim=-2))
        return normalize(x, mean, var, self)  # mean and var are (d,)

    def statistics(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance to normalize by; tokens is (n, d)."""
        if not self.training:
            return self.running_mean, self.running_var  # (2)!
        n = len(tokens)
        if n < 2:
            raise ValueError("one token has no variance to train with")
        wide = tokens.to(torch.promote_types(tokens.dtype, torch.float32))
        var, mean = torch.var_mean(wide, 0, correction=0)  # (3)!
        self.track(mean, var * n / (n - 1))  # (4)!
        return mean, var

    @torch.no_grad()
    def track(self, mean: Tensor, unbiased_var: Tensor) -> None:
        """Move the running statistics towards those of this batch."""
        self.running_mean += self.momentum * (mean - self.running_mean)
        self.running_var += self.momentum * (unbiased_var - self.running_var)


# --8<-- [end:BatchNorm]
