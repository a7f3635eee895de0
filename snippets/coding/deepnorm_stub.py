from torch import Tensor, nn


class DeepNorm(nn.Module):
    """One residual connection of a decoder-only model of `layers` layers.

    A layer has two of them: attention and feed-forward. branch maps
    (..., d) to (..., d); its linear layers, at any depth inside it, are named
    query, key, value, output, up or down. Draw their weights by Xavier's
    normal rule, with DeepNorm's gain where it belongs; leave biases alone.
    The norm is a fresh nn.LayerNorm(d).
    """

    def __init__(self, branch: nn.Module, d: int, layers: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError
