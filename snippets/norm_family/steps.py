import torch
from torch import Tensor, nn


class Steps(nn.Module):
    """LayerNorm without a bias, with each of its two steps optional.

    x is (..., d), the gain (d,). Both steps: LayerNorm. Only the scaling:
    RMSNorm. Only the centring: a projection. None: the gain alone, which
    starts as the identity.
    """

    def __init__(
        self, d: int, centre: bool, scale: bool, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.centre, self.scale, self.eps = centre, scale, eps
        self.gain = nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        if self.centre:
            x = x - x.mean(dim=-1, keepdim=True)
        if self.scale:
            mean_square = x.square().mean(dim=-1, keepdim=True)
            x = x * torch.rsqrt(mean_square + self.eps)
        return self.gain * x
