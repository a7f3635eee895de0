from torch import Tensor, nn

from snippets.residual_recipes.residual_dual import Streams


class Siamese(nn.Module):
    """A normalized stream x and a plain stream y that share each branch.

    Both are (..., d) and start as the embedding; layer counts from 1. As
    in the authors' code for DeiT, with LayerNorm. Li et al. (2026).
    """

    def __init__(self, branch: nn.Module, d: int, layer: int) -> None:
        super().__init__()
        self.branch, self.factor = branch, (2 * layer) ** -0.5
        self.post, self.pre = nn.LayerNorm(d), nn.LayerNorm(d)
        self.input = nn.LayerNorm(d)

    def forward(self, streams: Streams) -> Streams:
        x, y = streams
        x = self.post(x)
        update = self.branch(self.input(x + self.pre(y)))
        return x + self.factor * update, y + update


class SiameseEnd(nn.Module):
    """norm(post(x) + pre(y)): what the head reads."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.post, self.pre = nn.LayerNorm(d), nn.LayerNorm(d)
        self.norm = nn.LayerNorm(d)

    def forward(self, streams: Streams) -> Tensor:
        x, y = streams
        return self.norm(self.post(x) + self.pre(y))
