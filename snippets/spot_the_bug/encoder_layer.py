from torch import Tensor, nn


class EncoderLayer(nn.Module):
    """A layer of a Pre-Norm encoder. x is (batch, time, d)."""

    def __init__(
        self, attention: nn.Module, feed_forward: nn.Module, d: int
    ) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        x = self.norm2(x)
        return x + self.feed_forward(x)
