"""Hand-made norms whose names, attributes and initial values say nothing true."""

import torch
from torch import nn


def _root(h, eps):
    return torch.rsqrt(h.square().mean(-1, keepdim=True) + eps)


class Llama(nn.Module):
    """RMSNorm: normalised in fp32, cast, then the gain."""

    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight, self.hidden = nn.Parameter(torch.ones(d)), eps

    def forward(self, x):
        h = x.float()
        return self.weight * (h * _root(h, self.hidden)).to(x.dtype)


class Gemma(nn.Module):
    """RMSNorm: times 1 + w in fp32, then cast."""

    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight, self.hidden = nn.Parameter(torch.zeros(d)), eps

    def forward(self, x):
        h = x.float()
        return (h * _root(h, self.hidden) * (1 + self.weight.float())).to(x.dtype)


class GemmaStartedAtOne(Gemma):
    """1 + w, started at one like Nemotron's."""

    def __init__(self, d, eps=1e-6):
        super().__init__(d, eps)
        nn.init.ones_(self.weight)


class RMSNormInName(nn.LayerNorm):
    """A LayerNorm that is called RMSNorm."""


class Naive(Llama):
    """RMSNorm without an upcast: squares overflow in fp16."""

    def forward(self, x):
        return self.weight * (x * _root(x, self.hidden))


class NeverCast(Llama):
    """RMSNorm that returns float32 whatever comes in."""

    def forward(self, x):
        h = x.float()
        return self.weight.float() * h * _root(h, self.hidden)


class RootCast(Llama):
    """The root is cast, then the product taken in the input's dtype."""

    def forward(self, x):
        return x * _root(x.float(), self.hidden).to(x.dtype)

    def __init__(self, d, eps=1e-6):
        super().__init__(d, eps)
        del self.weight


class Lying(Llama):
    """An attribute eps that the arithmetic does not use."""

    def __init__(self, d, eps=1e-6):
        super().__init__(d, eps)
        self.eps = self.variance_epsilon = 0.5


class Groups(nn.Module):
    """RMSNorm over groups of eight, as in heads that are not split off."""

    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight, self.hidden = nn.Parameter(torch.ones(d)), eps

    def forward(self, x):
        h = x.float().unflatten(-1, (-1, 8))
        return self.weight * (h * _root(h, self.hidden)).flatten(-2).to(x.dtype)


class Unit(nn.Module):
    """L2: every vector has length one."""

    def __init__(self, d=0, eps=1e-6):
        super().__init__()
        self.hidden = eps

    def forward(self, x):
        h = x.float()
        length = (h.square().sum(-1, keepdim=True) + self.hidden).sqrt()
        return (h / length).to(x.dtype)


class EpsOutside(nn.Module):
    """eps added to the root: of another form."""

    def __init__(self, d=0, eps=1e-3):
        super().__init__()
        self.hidden = eps

    def forward(self, x):
        h = x.float()
        return (h / (h.square().mean(-1, keepdim=True).sqrt() + self.hidden)).to(
            x.dtype
        )


class ShiftNamedGain(nn.Module):
    """LayerNorm whose bias is called gain and whose gain is called bias."""

    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.ones(d))
        self.hidden = eps

    def forward(self, x):
        d = x.shape[-1:]
        return nn.functional.layer_norm(x, d, self.bias, self.gain, self.hidden)


class Batch(nn.Module):
    """Statistics over all rows: no norm of a token."""

    def forward(self, x):
        rows = x.flatten(0, -2)
        return (x - rows.mean(0)) / (rows.var(0) + 1e-5).sqrt()
