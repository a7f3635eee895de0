"""Wrong assemblies of Mix-LN and HybridNorm. Same signatures as the right ones."""

import math

from torch import nn

from snippets.zero_centred_and_mixed.mixed import hybrid_norm, layer
from snippets.zero_centred_and_mixed.placements import (
    Attention,
    NoNorm,
    NormedStream,
    PeriNorm,
    PostNorm,
    PreNorm,
)


def _stack(d, heads, kinds):
    return nn.Sequential(*(layer(d, heads, a, b, q) for a, b, q in kinds))


def _two(d, heads, first, last, counts):
    kinds = [(first, first, False)] * counts[0] + [(last, last, False)] * counts[1]
    return _stack(d, heads, kinds)


# Mix-LN


def the_other_way_round(d, heads, layers, alpha=0.25):
    first = int(alpha * layers)
    return _two(d, heads, PreNorm, PostNorm, (layers - first, first))


def placements_exchanged(d, heads, layers, alpha=0.25):
    first = int(alpha * layers)
    return _two(d, heads, PreNorm, PostNorm, (first, layers - first))


def fraction_of_pre_norm(d, heads, layers, alpha=0.25):
    last = int(alpha * layers)
    return _two(d, heads, PostNorm, PreNorm, (layers - last, last))


def rounded_up(d, heads, layers, alpha=0.25):
    first = math.ceil(alpha * layers)
    return _two(d, heads, PostNorm, PreNorm, (first, layers - first))


def alpha_ignored(d, heads, layers, alpha=0.25):
    first = layers // 4
    return _two(d, heads, PostNorm, PreNorm, (first, layers - first))


def every_fourth_layer(d, heads, layers, alpha=0.25):
    step = max(round(1 / alpha), 1) if alpha else layers + 1
    kinds = [PostNorm if i % step == 0 else PreNorm for i in range(layers)]
    return _stack(d, heads, [(kind, kind, False) for kind in kinds])


def mixed_inside_the_layer(d, heads, layers, alpha=0.25):
    return _stack(d, heads, [(PreNorm, PostNorm, False)] * layers)


def only_attention_post_norm(d, heads, layers, alpha=0.25):
    first = int(alpha * layers)
    kinds = [(PostNorm, PreNorm, False)] * first
    return _stack(d, heads, kinds + [(PreNorm, PreNorm, False)] * (layers - first))


def both_sides_normed(d, heads, layers, alpha=0.25):
    first = int(alpha * layers)
    return _two(d, heads, PeriNorm, PreNorm, (first, layers - first))


def no_norm_after_the_first(d, heads, layers, alpha=0.25):
    first = int(alpha * layers)
    return _two(d, heads, PostNorm, NoNorm, (first, layers - first))


MIX_LN = [
    the_other_way_round,
    placements_exchanged,
    fraction_of_pre_norm,
    rounded_up,
    alpha_ignored,
    every_fourth_layer,
    mixed_inside_the_layer,
    only_attention_post_norm,
    both_sides_normed,
    no_norm_after_the_first,
]


# HybridNorm


def _hybrid(d, heads, layers, star, first, rest):
    kinds = [rest] * layers
    if star:
        kinds[0] = first
    return _stack(d, heads, kinds)


RIGHT, STAR = (NoNorm, NormedStream, True), (PreNorm, PreNorm, True)


def post_norm_after_the_network(d, heads, layers, star=False):
    return _hybrid(d, heads, layers, star, STAR, (NoNorm, PostNorm, True))


def pre_norm_network(d, heads, layers, star=False):
    return _hybrid(d, heads, layers, star, STAR, (NoNorm, PreNorm, True))


def qkv_norm_forgotten(d, heads, layers, star=False):
    return _hybrid(d, heads, layers, star, STAR, (NoNorm, NormedStream, False))


def pre_norm_attention(d, heads, layers, star=False):
    return _hybrid(d, heads, layers, star, STAR, (PreNorm, NormedStream, True))


def halves_exchanged(d, heads, layers, star=False):
    return _hybrid(d, heads, layers, star, STAR, (NormedStream, NoNorm, True))


def post_norm_on_attention(d, heads, layers, star=False):
    return _hybrid(d, heads, layers, star, STAR, (PostNorm, NormedStream, True))


def star_without_qkv_norm(d, heads, layers, star=False):
    return _hybrid(d, heads, layers, star, (PreNorm, PreNorm, False), RIGHT)


def star_only_in_attention(d, heads, layers, star=False):
    return _hybrid(d, heads, layers, star, (PreNorm, NormedStream, True), RIGHT)


def star_in_the_last_layer(d, heads, layers, star=False):
    stack = _hybrid(d, heads, layers, False, STAR, RIGHT)
    if star:
        stack[-1] = layer(d, heads, *STAR)
    return stack


def star_in_every_layer(d, heads, layers, star=False):
    return _hybrid(d, heads, layers, False, STAR, STAR if star else RIGHT)


def star_by_default(d, heads, layers, star=False):
    return _hybrid(d, heads, layers, True, STAR, RIGHT)


class _NoValueNorm(Attention):
    def __init__(self, d, heads, qkv_norm=False):
        super().__init__(d, heads, qkv_norm)
        self.norms[2] = nn.Identity()


class _WideNorm(Attention):
    """Normalizes q, k and v across all heads."""

    def forward(self, x):
        from torch.nn import functional as F

        from snippets.rms_norm.reference import rms_norm

        heads = []
        for module, part in zip(self.norms, self.qkv(x).chunk(3, -1), strict=True):
            y = rms_norm(part).unflatten(-1, (self.heads, -1)) * module.gain
            heads.append(y.transpose(1, 2))
        y = F.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(start_dim=2))


def _other_attention(kind, d, heads, layers, star):
    stack = hybrid_norm(d, heads, layers, star)
    for each in stack:
        other = kind(d, heads, True)
        other.qkv, other.out = each[0].body.qkv, each[0].body.out
        each[0].body = other
    return stack


def values_not_normalized(d, heads, layers, star=False):
    return _other_attention(_NoValueNorm, d, heads, layers, star)


def normalized_across_heads(d, heads, layers, star=False):
    return _other_attention(_WideNorm, d, heads, layers, star)


HYBRID_NORM = [
    post_norm_after_the_network,
    pre_norm_network,
    qkv_norm_forgotten,
    pre_norm_attention,
    halves_exchanged,
    post_norm_on_attention,
    star_without_qkv_norm,
    star_only_in_attention,
    star_in_the_last_layer,
    star_in_every_layer,
    star_by_default,
    values_not_normalized,
    normalized_across_heads,
]
