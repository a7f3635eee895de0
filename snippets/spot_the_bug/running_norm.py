import torch
from torch import Tensor, nn


class RunningNorm(nn.Module):
    """The same function as nn.BatchNorm1d(d), in both modes.

    x is (n, d) in float32, and n is at least 2 in training.
    """

    def __init__(
        self, d: int, eps: float = 1e-5, momentum: float = 0.1
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))
        self.register_buffer("running_mean", torch.zeros(d))
        self.register_buffer("running_var", torch.ones(d))
        self.eps, self.momentum = eps, momentum

    def forward(self, x: Tensor) -> Tensor:
        mean, var = self.running_mean, self.running_var
        if self.training:
            var, mean = torch.var_mean(x, dim=0, correction=0)
            with torch.no_grad():
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(var, self.momentum)
        x = (x - mean) * torch.rsqrt(var + self.eps)
        return self.weight * x + self.bias
