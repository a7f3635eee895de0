"""Wrong QK-Norms whose fault lies in the norm, which Attention is given."""

import torch
from torch import nn

from snippets.qk_norm.attention import Attention


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


FUNCTIONS = [
    statistic_over_all_heads,
    statistic_of_each_head_in_the_projection,
    statistic_of_one_device,
    statistic_over_time,
    statistic_over_time_and_features,
    gain_ignored,
    one_plus_gain,
    length_for_root_mean_square,
    statistic_detached,
    eps_hard_coded,
]
