import torch
from torch import Tensor, nn

from snippets.fused_residual.operator import add_rms_norm
from snippets.triton_rms_norm.operator import rms_norm


class AddNorm(nn.Module):
    """The stream with the branch added, and its norm."""

    def __init__(self, d: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d))

    def forward(
        self, stream: Tensor, branch: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        if branch is None:  # before the first layer
            return stream, rms_norm(stream, self.gain, self.eps)
        return add_rms_norm(stream, branch, self.gain, self.eps)


class Block(nn.Module):
    """A Pre-Norm block that leaves its last addition to the next norm."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.attention_norm, self.attention = AddNorm(d), nn.Linear(d, d)
        self.ffn_norm, self.ffn = AddNorm(d), nn.Linear(d, d)

    def forward(
        self, stream: Tensor, branch: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        stream, y = self.attention_norm(stream, branch)
        stream, y = self.ffn_norm(stream, self.attention(y))
        return stream, self.ffn(y)  # (1)!


class Stack(nn.Module):
    """Blocks and a last norm."""

    def __init__(self, d: int, blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(d) for _ in range(blocks))
        self.norm = AddNorm(d)

    def forward(self, stream: Tensor) -> Tensor:
        branch = None
        for block in self.blocks:
            stream, branch = block(stream, branch)
        return self.norm(stream, branch)[1]
