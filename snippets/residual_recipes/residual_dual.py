from torch import Tensor, nn

Streams = tuple[Tensor, Tensor]  # both (..., d); they start as (x, x)


class ResiDual(nn.Module):
    """A Post-Norm stream, and beside it the plain sum of all updates.

    Only the first stream is read and normalized. Xie et al. (2023).
    """

    def __init__(self, branch: nn.Module, d: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.branch, self.norm = branch, nn.LayerNorm(d, eps)

    def forward(self, streams: Streams) -> Streams:
        x, total = streams
        update = self.branch(x)
        return self.norm(x + update), total + update


class ResiDualEnd(nn.Module):
    """x + LayerNorm(total): what the head reads."""

    def __init__(self, d: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d, eps)

    def forward(self, streams: Streams) -> Tensor:
        x, total = streams
        return x + self.norm(total)
