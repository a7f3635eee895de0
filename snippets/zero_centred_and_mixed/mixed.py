from torch import nn

from snippets.zero_centred_and_mixed.placements import (
    Attention,
    NoNorm,
    NormedStream,
    PostNorm,
    PreNorm,
    feed_forward,
)


def layer(
    d: int,
    heads: int,
    attention: type[NoNorm],
    network: type[NoNorm],
    qkv_norm: bool = False,
) -> nn.Sequential:
    """One layer: attention and feed-forward network, each with a placement."""
    return nn.Sequential(
        attention(d, Attention(d, heads, qkv_norm)),
        network(d, feed_forward(d)),
    )


def uniform(
    d: int, heads: int, layers: int, placement: type[NoNorm]
) -> nn.Sequential:
    """Every layer with the same placement."""
    return nn.Sequential(
        *(layer(d, heads, placement, placement) for _ in range(layers))
    )


def mix_ln(
    d: int, heads: int, layers: int, alpha: float = 0.25
) -> nn.Sequential:
    """The first ⌊alpha · layers⌋ layers Post-Norm, the rest Pre-Norm.

    Li et al. (2024); rounding down is our choice.
    """
    first = int(alpha * layers)
    placements = [PostNorm] * first + [PreNorm] * (layers - first)
    return nn.Sequential(*(layer(d, heads, each, each) for each in placements))


def hybrid_norm(
    d: int, heads: int, layers: int, star: bool = False
) -> nn.Sequential:
    """Attention with QKV norm only; feed-forward on the normalized stream.

    star is HybridNorm*: the first layer is Pre-Norm and keeps the QKV norm.
    Zhuo et al. (2025).
    """
    stack = [
        layer(d, heads, NoNorm, NormedStream, qkv_norm=True)
        for _ in range(layers)
    ]
    if star:
        stack[0] = layer(d, heads, PreNorm, PreNorm, qkv_norm=True)
    return nn.Sequential(*stack)
