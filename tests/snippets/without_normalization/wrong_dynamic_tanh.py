"""Wrong DyTs that readers meet in the wild. Same signature as dynamic_tanh."""

import torch
from torch.nn import functional as F


def _wide(x, *others):
    wide = torch.promote_types(x.dtype, torch.float32)
    return [each.to(wide) for each in (x, *others)]


def alpha_outside_the_tanh(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    return (g * a * torch.tanh(h) + b).to(x.dtype)


def alpha_ignored(x, alpha, gain, bias):
    h, g, b = _wide(x, gain, bias)
    return (g * torch.tanh(h) + b).to(x.dtype)


def divides_by_alpha(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    return (g * torch.tanh(h / a) + b).to(x.dtype)


def gain_inside_the_tanh(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    return (torch.tanh(a * g * h) + b).to(x.dtype)


def bias_inside_the_tanh(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    return (g * torch.tanh(a * h + b)).to(x.dtype)


def bias_forgotten(x, alpha, gain, bias):
    h, a, g = _wide(x, alpha, gain)
    return (g * torch.tanh(a * h)).to(x.dtype)


def gain_times_the_bias(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    return (g * (torch.tanh(a * h) + b)).to(x.dtype)


def sigmoid_for_tanh(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    return (g * torch.sigmoid(a * h) + b).to(x.dtype)


def erf_for_tanh(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    return (g * torch.erf(a * h) + b).to(x.dtype)


def clamp_for_tanh(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    return (g * F.hardtanh(a * h) + b).to(x.dtype)


def normalizes_first(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    h = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6)
    return (g * torch.tanh(a * h) + b).to(x.dtype)


def adds_the_input_back(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    return (h + g * torch.tanh(a * h) + b).to(x.dtype)


def alpha_detached(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha.detach(), gain, bias)
    return (g * torch.tanh(a * h) + b + 0 * alpha).to(x.dtype)


def in_the_dtype_of_x(x, alpha, gain, bias):
    alpha, gain, bias = (each.to(x.dtype) for each in (alpha, gain, bias))
    return gain * torch.tanh(alpha * x) + bias


def rounds_before_the_gain(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    t = torch.tanh(a * h).to(x.dtype)
    return (g * t.to(g.dtype) + b).to(x.dtype)


def returns_the_wide_dtype(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    return g * torch.tanh(a * h) + b


def overwrites_its_input(x, alpha, gain, bias):
    h, a, g, b = _wide(x, alpha, gain, bias)
    t = torch.tanh(a * h)
    x.data.copy_(t.detach())
    return (g * t + b).to(x.dtype)


VARIANTS = [
    value
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_")
]
