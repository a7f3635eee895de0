import torch
from torch import Tensor, nn


class Scale(nn.Module):
    """A learned vector that starts at init but is stored at scale.

    size numbers; used as stored * init / scale. Adam moves a stored number by
    about the learning rate, so the value moves by that times init / scale.
    Loshchilov et al. (2024).
    """

    def __init__(self, size: int, init: float, scale: float) -> None:
        super().__init__()
        self.stored = nn.Parameter(torch.full((size,), scale))
        self.factor = init / scale

    def forward(self) -> Tensor:
        return self.stored * self.factor
