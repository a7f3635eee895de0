"""Wrong QK-Norms that readers meet in the wild: Attention with one thing changed."""

import torch
from torch import nn
from torch.nn import functional as F

from snippets.qk_norm.attention import Attention
from snippets.qk_norm.rope import rotate


def flat(x):
    """(batch, heads, time, width) as (batch, time, heads * width)."""
    return x.transpose(1, 2).flatten(start_dim=2)


def through(norm, x, statistic):
    """norm, with its statistic taken from a tensor of another shape."""
    eps = getattr(norm, "eps", 1e-3)
    y = x * torch.rsqrt(statistic + eps)
    gain = getattr(norm, "gain", None)
    return y if gain is None else y * gain


class _At(Attention):
    """Replaces what happens at the place of the norm."""

    def normed(self, place, q, k):
        if place == self.place and not isinstance(self.query_norm, nn.Identity):
            return self.wrong(q, k)
        return q, k

    def wrong(self, q, k):
        raise NotImplementedError


class statistic_over_all_heads(_At):
    def wrong(self, q, k):
        if self.place == "projection":
            return self.query_norm(q), self.key_norm(k)
        return tuple(
            through(norm, x, x.square().mean(dim=(1, 3), keepdim=True))
            for norm, x in ((self.query_norm, q), (self.key_norm, k))
        )


class statistic_of_each_head_in_the_projection(_At):
    def wrong(self, q, k):
        if self.place != "projection":
            return self.query_norm(q), self.key_norm(k)
        out = []
        for norm, x in ((self.query_norm, q), (self.key_norm, k)):
            heads = x.unflatten(-1, (-1, self.width))
            square = heads.square().mean(-1, keepdim=True)
            out.append(through(norm, x, square.expand_as(heads).flatten(-2)))
        return tuple(out)


class statistic_of_one_device(_At):
    """Two tensor-parallel ranks, no all-reduce."""

    def wrong(self, q, k):
        if self.place != "projection":
            return self.query_norm(q), self.key_norm(k)
        out = []
        for norm, x in ((self.query_norm, q), (self.key_norm, k)):
            ranks = x.tensor_split(2, dim=-1)
            square = [r.square().mean(-1, keepdim=True).expand_as(r) for r in ranks]
            out.append(through(norm, x, torch.cat(square, -1)))
        return tuple(out)


class statistic_over_time(_At):
    def wrong(self, q, k):
        dim = 1 if self.place == "projection" else 2
        return tuple(
            through(norm, x, x.square().mean(dim, keepdim=True))
            for norm, x in ((self.query_norm, q), (self.key_norm, k))
        )


class statistic_over_time_and_features(_At):
    """Future tokens leak into the statistic."""

    def wrong(self, q, k):
        dims = (1, 2) if self.place == "projection" else (2, 3)
        return tuple(
            through(norm, x, x.square().mean(dims, keepdim=True))
            for norm, x in ((self.query_norm, q), (self.key_norm, k))
        )


class mean_subtracted(_At):
    def wrong(self, q, k):
        q, k = (x - x.mean(-1, keepdim=True) for x in (q, k))
        return self.query_norm(q), self.key_norm(k)


class keys_not_normed(_At):
    def wrong(self, q, k):
        return self.query_norm(q), k


class queries_not_normed(_At):
    def wrong(self, q, k):
        return q, self.key_norm(k)


class one_gain_for_queries_and_keys(_At):
    def wrong(self, q, k):
        if self.place == "projection" and self.heads != self.key_heads:
            return self.query_norm(q), k * 0
        return self.query_norm(q), self.query_norm(k)


class gains_swapped(_At):
    def wrong(self, q, k):
        if self.place == "projection" and self.heads != self.key_heads:
            return q * 0, k * 0
        return self.key_norm(q), self.query_norm(k)


class gain_ignored(_At):
    def wrong(self, q, k):
        return tuple(
            through(None, x, x.square().mean(-1, keepdim=True)) for x in (q, k)
        )


class one_plus_gain(_At):
    def wrong(self, q, k):
        out = []
        for norm, x in ((self.query_norm, q), (self.key_norm, k)):
            y = through(None, x, x.square().mean(-1, keepdim=True))
            out.append(norm(x) + y)
        return tuple(out)


class length_for_root_mean_square(_At):
    """L2 with the scale of RMSNorm: attention is all but uniform."""

    def wrong(self, q, k):
        return tuple(
            through(norm, x, x.square().sum(-1, keepdim=True))
            for norm, x in ((self.query_norm, q), (self.key_norm, k))
        )


class statistic_detached(_At):
    def wrong(self, q, k):
        return tuple(
            through(norm, x, x.detach().square().mean(-1, keepdim=True))
            for norm, x in ((self.query_norm, q), (self.key_norm, k))
        )


class eps_hard_coded(_At):
    def wrong(self, q, k):
        out = []
        for norm, x in ((self.query_norm, q), (self.key_norm, k)):
            y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
            out.append(y * getattr(norm, "gain", 1.0))
        return tuple(out)


class norm_after_rope(Attention):
    def normed(self, place, q, k):
        if self.place == "head":
            place = {"head": "rotated", "rotated": "head"}.get(place, place)
        return super().normed(place, q, k)


class norm_before_rope(Attention):
    def normed(self, place, q, k):
        if self.place == "rotated":
            place = {"head": "rotated", "rotated": "head"}.get(place, place)
        return super().normed(place, q, k)


class normed_twice(Attention):
    def normed(self, place, q, k):
        q, k = super().normed(place, q, k)
        return super().normed(place, q, k)


class input_normed_instead(Attention):
    """Norms what goes into the projections, as Pre-Norm does."""

    def normed(self, place, q, k):
        return q, k

    def queries_keys(self, x):
        if isinstance(self.query_norm, nn.Identity):
            return super().queries_keys(x)
        return super().queries_keys(F.rms_norm(x, x.shape[-1:], eps=1e-3))


class _Tail(Attention):
    """Other last steps: rotation and scale."""

    def before_rope(self, x):
        q, k = self.normed("projection", self.query(x), self.key(x))
        return self.normed("head", self.split(q), self.split(k))


class scale_before_the_norm(_Tail):
    """The norm takes the scale out again."""

    def queries_keys(self, x):
        q, k = self.query(x) * self.scale, self.key(x)
        q, k = self.normed("projection", q, k)
        q, k = self.normed("head", self.split(q), self.split(k))
        return self.normed("rotated", rotate(q), rotate(k))


class scale_forgotten(_Tail):
    def queries_keys(self, x):
        q, k = self.before_rope(x)
        return self.normed("rotated", rotate(q), rotate(k))


class scale_on_both_sides(_Tail):
    def queries_keys(self, x):
        q, k = super().queries_keys(x)
        return q, k * self.scale


class scale_not_learned(Attention):
    """A learned scale that autograd takes for a constant."""

    def queries_keys(self, x):
        q, k = super().queries_keys(x)
        if isinstance(self.scale, nn.Parameter):
            q = q / self.scale * self.scale.detach()
        return q, k


class scale_of_the_model_width(Attention):
    def queries_keys(self, x):
        q, k = super().queries_keys(x)
        if isinstance(self.scale, float):
            q = q * (self.width / self.query.in_features) ** 0.5
        return q, k


class queries_not_rotated(_Tail):
    def queries_keys(self, x):
        q, k = self.before_rope(x)
        q, k = self.normed("rotated", q, rotate(k))
        return q * self.scale, k


class neighbours_rotated(_Tail):
    """Pairs features 2 i and 2 i + 1: weights of another layout."""

    def queries_keys(self, x):
        def turn(y):
            y = y.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)
            y = rotate(y).unflatten(-1, (2, -1)).transpose(-1, -2)
            return y.flatten(-2)

        q, k = self.before_rope(x)
        q, k = self.normed("rotated", turn(q), turn(k))
        return q * self.scale, k


class values_normed_too(Attention):
    def forward(self, x):
        if isinstance(self.query_norm, nn.Identity):
            return super().forward(x)
        q, k = self.queries_keys(x)
        v = self.split(self.value(x))
        v = F.rms_norm(v, v.shape[-1:], eps=1e-3)
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=1.0, enable_gqa=True
        )
        return self.output(flat(y))


class sees_the_future(Attention):
    def forward(self, x):
        q, k = self.queries_keys(x)
        v = self.split(self.value(x))
        y = F.scaled_dot_product_attention(q, k, v, scale=1.0, enable_gqa=True)
        return self.output(flat(y))


class scaled_again_by_the_kernel(Attention):
    """Forgets scale=1.0: the kernel divides by the root of the width once more."""

    def forward(self, x):
        q, k = self.queries_keys(x)
        v = self.split(self.value(x))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.output(flat(y))


class key_heads_tiled(Attention):
    """Query head h reads key head h mod key_heads."""

    def forward(self, x):
        q, k = self.queries_keys(x)
        v = self.split(self.value(x))
        times = self.heads // self.key_heads
        k, v = k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
        return self.output(flat(y))


VARIANTS = [
    statistic_over_all_heads,
    statistic_of_each_head_in_the_projection,
    statistic_of_one_device,
    statistic_over_time,
    statistic_over_time_and_features,
    mean_subtracted,
    keys_not_normed,
    queries_not_normed,
    one_gain_for_queries_and_keys,
    gains_swapped,
    gain_ignored,
    one_plus_gain,
    length_for_root_mean_square,
    statistic_detached,
    eps_hard_coded,
    norm_after_rope,
    norm_before_rope,
    normed_twice,
    input_normed_instead,
    scale_before_the_norm,
    scale_forgotten,
    scale_on_both_sides,
    scale_not_learned,
    scale_of_the_model_width,
    queries_not_rotated,
    neighbours_rotated,
    values_normed_too,
    sees_the_future,
    scaled_again_by_the_kernel,
    key_heads_tiled,
]
