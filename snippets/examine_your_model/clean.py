from snippets.transformer_block.decoder import Decoder, Sizes

TINY = Sizes(
    d=64,
    blocks=3,
    heads=4,
    width=16,
    hidden=128,
    vocabulary=97,
    qk_norm=True,
)


def decoder() -> Decoder:
    """A factory: it takes nothing and returns the model."""
    return Decoder(TINY)
