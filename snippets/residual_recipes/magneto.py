# --8<-- [start:NormedLinear]
from math import log

from torch import Tensor, nn


class NormedLinear(nn.Linear):
    """W LayerNorm(x) without bias; x is (..., fan_in)."""

    def __init__(self, fan_in: int, fan_out: int) -> None:
        super().__init__(fan_in, fan_out, bias=False)
        self.norm = nn.LayerNorm(fan_in)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.norm(x))


def sub_ln(branch: nn.Module) -> nn.Module:
    """Put, in place, Sub-LN's second norm in front of the last matrix.

    That is the matrix `output` of attention, `down` of a feed-forward
    network; it is a new one, still to be drawn. Wang et al. (2022).
    """
    for name, layer in list(branch.named_children()):
        if name in ("output", "down"):
            normed = NormedLinear(layer.in_features, layer.out_features)
            setattr(branch, name, normed)
    return branch


# --8<-- [end:NormedLinear]


# --8<-- [start:magneto_gains]
def magneto_gains(
    encoder_layers: int = 0, decoder_layers: int = 0
) -> dict[str, float]:
    """Gain of the value, output and feed-forward matrices, by stack.

    Queries and keys keep gain 1. Layers, not sublayers; leave the stack
    out that the model does not have. Raises ValueError without a layer.
    """
    n, m = encoder_layers, decoder_layers
    if min(n, m) < 0 or n + m == 0:
        raise ValueError(f"{n} encoder and {m} decoder layers")
    if n and m:
        return {
            "encoder": (log(3 * m) * log(2 * n) / 3) ** 0.5,
            "decoder": log(3 * m) ** 0.5,
        }
    return {"encoder" if n else "decoder": log(2 * (n + m)) ** 0.5}


# --8<-- [end:magneto_gains]
