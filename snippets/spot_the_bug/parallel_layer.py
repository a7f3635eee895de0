from torch import Tensor, nn


class ParallelLayer(nn.Module):
    """A Pre-Norm layer with parallel branches, as in GPT-J.

    x is (batch, time, d); each branch maps it to that shape.
    """

    def __init__(
        self, attention: nn.Module, feed_forward: nn.Module, d: int
    ) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.norm = nn.LayerNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x)
        return x + self.attention(h) + self.feed_forward(h)
