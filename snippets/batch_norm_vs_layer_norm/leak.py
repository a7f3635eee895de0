import torch
from torch import Tensor, nn

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm, LayerNorm

torch.manual_seed(0)
x = torch.randn(3, 5, 8, dtype=torch.float64)  # batch, sequence, d


class PerPosition(nn.Module):
    """A BatchNorm of its own for every position; x is (batch, length, d)."""

    def __init__(self, length: int, d: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(BatchNorm(d) for _ in range(length))

    def forward(self, x: Tensor) -> Tensor:
        pairs = zip(self.norms, x.unbind(1), strict=True)
        return torch.stack([norm(part) for norm, part in pairs], dim=1)


def influence(norm: nn.Module, sequence: int, position: int) -> float:
    """How far token 0 of sequence 0 moves when another token changes."""
    changed = x.clone()
    changed[sequence, position] += 10
    return (norm(changed) - norm(x))[0, 0].abs().max().item()


norms = {
    "BatchNorm, train": BatchNorm(8),
    "per position, train": PerPosition(5, 8),
    "BatchNorm, eval": BatchNorm(8).eval(),
    "LayerNorm": LayerNorm(8),
}
print("token 0 moves with the future  other sequences")
for name, norm in norms.items():
    future, other = influence(norm, 0, 4), influence(norm, 1, 0)
    print(f"{name:<19}{future:11.2f}{other:17.2f}")
