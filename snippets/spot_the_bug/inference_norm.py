import torch
from torch import Tensor, nn


class InferenceNorm(nn.Module):
    """RMSNorm without needless copies, for inference. x is (..., d)."""

    def __init__(self, d: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.eps = eps

    @torch.inference_mode()
    def forward(self, x: Tensor) -> Tensor:
        dtype = x.dtype
        x = x.float()
        mean_square = x.square().mean(-1, keepdim=True)
        x.mul_(torch.rsqrt(mean_square + self.eps))
        return (x * self.weight).to(dtype)
