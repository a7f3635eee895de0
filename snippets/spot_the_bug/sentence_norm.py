from torch import Tensor, nn


class SentenceNorm(nn.Module):
    """BatchNorm over the tokens of a padded batch.

    x is (batch, time, d) and finite, mask is (batch, time) and False at
    padding. What comes out at padding is zero.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(d)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x * mask[..., None]
        y = self.norm(x.flatten(0, 1)).view_as(x)
        return y * mask[..., None]
