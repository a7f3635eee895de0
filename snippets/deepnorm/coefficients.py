# --8<-- [start:coefficients]
from typing import NamedTuple


class Coefficients(NamedTuple):
    alpha: float  # multiplies the stream, in every forward pass
    beta: float  # gain of the scaled matrices, at initialization only


def coefficients(
    encoder_layers: int = 0, decoder_layers: int = 0
) -> dict[str, Coefficients]:
    """DeepNorm's alpha and beta for each stack of a Transformer.

    Layers, not sublayers: an encoder layer has two sublayers, a decoder
    layer that attends to an encoder has three. Leave the stack out that the
    model does not have. Raises ValueError without a layer. Wang et al.
    (2022), figure 2.
    """
    n, m = encoder_layers, decoder_layers
    if min(n, m) < 0 or n + m == 0:
        raise ValueError(f"{n} encoder and {m} decoder layers")
    if n and m:
        mixed = (n**4 * m) ** (1 / 16)
        return {
            "encoder": Coefficients(0.81 * mixed, 0.87 / mixed),
            "decoder": Coefficients((3 * m) ** 0.25, (12 * m) ** -0.25),
        }
    layers = n + m
    single = Coefficients((2 * layers) ** 0.25, (8 * layers) ** -0.25)
    return {"encoder" if n else "decoder": single}


# --8<-- [end:coefficients]
