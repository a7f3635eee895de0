"""Wrong RMSNorms that readers meet in the wild. Same signature as rms_norm."""

import torch


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _times(y, gain, x):
    if gain is not None:
        y = y * gain.to(y.dtype)
    return y.to(x.dtype)


def _mean_square(h, dim=-1):
    return h.square().mean(dim=dim, keepdim=True)


def eps_outside_the_root(x, gain=None, eps=1e-6):
    h = _wide(x)
    return _times(h / (_mean_square(h).sqrt() + eps), gain, x)


def eps_missing(x, gain=None, eps=1e-6):
    h = _wide(x)
    return _times(h * torch.rsqrt(_mean_square(h)), gain, x)


def eps_hard_coded(x, gain=None, eps=1e-6):
    h = _wide(x)
    return _times(h * torch.rsqrt(_mean_square(h) + 1e-6), gain, x)


def eps_rounded_to_the_input(x, gain=None, eps=1e-6):
    h, small = _wide(x), torch.tensor(eps, dtype=x.dtype)
    return _times(h * torch.rsqrt(_mean_square(h) + small.to(h.dtype)), gain, x)


def eps_added_to_the_sum(x, gain=None, eps=1e-6):
    h = _wide(x)
    total = h.square().sum(-1, keepdim=True) + eps
    return _times(h * torch.rsqrt(total / x.shape[-1]), gain, x)


def divides_by_d_minus_one(x, gain=None, eps=1e-6):
    h = _wide(x)
    mean = h.square().sum(-1, keepdim=True) / max(x.shape[-1] - 1, 1)
    return _times(h * torch.rsqrt(mean + eps), gain, x)


def variance_for_mean_square(x, gain=None, eps=1e-6):
    h = _wide(x)
    variance = h.var(-1, correction=0, keepdim=True)
    return _times(h * torch.rsqrt(variance + eps), gain, x)


def mean_subtracted(x, gain=None, eps=1e-6):
    h = _wide(x)
    h = h - h.mean(-1, keepdim=True)
    return _times(h * torch.rsqrt(_mean_square(h) + eps), gain, x)


def statistics_over_time(x, gain=None, eps=1e-6):
    h = _wide(x)
    return _times(h * torch.rsqrt(_mean_square(h, max(-2, -x.ndim)) + eps), gain, x)


def statistics_over_time_and_features(x, gain=None, eps=1e-6):
    h = _wide(x)
    dims = tuple(range(x.ndim))[-2:]
    return _times(h * torch.rsqrt(_mean_square(h, dims) + eps), gain, x)


def gain_ignored(x, gain=None, eps=1e-6):
    h = _wide(x)
    return _times(h * torch.rsqrt(_mean_square(h) + eps), None, x)


def gain_twice(x, gain=None, eps=1e-6):
    h = _wide(x)
    square = None if gain is None else gain * gain
    return _times(h * torch.rsqrt(_mean_square(h) + eps), square, x)


def one_plus_gain(x, gain=None, eps=1e-6):
    h = _wide(x)
    more = None if gain is None else 1 + gain
    return _times(h * torch.rsqrt(_mean_square(h) + eps), more, x)


def gain_before_the_statistics(x, gain=None, eps=1e-6):
    h = _wide(x) if gain is None else _wide(x) * gain
    return _times(h * torch.rsqrt(_mean_square(h) + eps), None, x)


def divides_by_rsqrt(x, gain=None, eps=1e-6):
    h = _wide(x)
    return _times(h / torch.rsqrt(_mean_square(h) + eps), gain, x)


def root_missing(x, gain=None, eps=1e-6):
    h = _wide(x)
    return _times(h / (_mean_square(h) + eps), gain, x)


def sum_for_mean(x, gain=None, eps=1e-6):
    h = _wide(x)
    return _times(h * torch.rsqrt(h.square().sum(-1, keepdim=True) + eps), gain, x)


def mean_absolute_value(x, gain=None, eps=1e-6):
    h = _wide(x)
    return _times(h / (h.abs().mean(-1, keepdim=True) + eps), gain, x)


def squares_before_the_upcast(x, gain=None, eps=1e-6):
    mean_square = _wide(x.square()).mean(-1, keepdim=True)
    return _times(_wide(x) * torch.rsqrt(mean_square + eps), gain, x)


def never_upcasts(x, gain=None, eps=1e-6):
    return _times(x * torch.rsqrt(_mean_square(x) + eps), gain, x)


def accumulates_in_low_precision(x, gain=None, eps=1e-6):
    h = _wide(x)
    total = torch.zeros_like(x[..., :1])
    for feature in h.square().to(x.dtype).unbind(-1):
        total = total + feature.unsqueeze(-1)  # rounds after every feature
    return _times(h * torch.rsqrt(_wide(total) / x.shape[-1] + eps), gain, x)


def always_float32(x, gain=None, eps=1e-6):
    h = x.float()
    return _times(h * torch.rsqrt(_mean_square(h) + eps), gain, x)


def returns_the_wide_dtype(x, gain=None, eps=1e-6):
    h = _wide(x)
    y = h * torch.rsqrt(_mean_square(h) + eps)
    return y if gain is None else y * gain.to(y.dtype)


def dtype_follows_the_gain(x, gain=None, eps=1e-6):
    h = _wide(x)
    y = (h * torch.rsqrt(_mean_square(h) + eps)).to(x.dtype)
    return y if gain is None else y * gain


def overwrites_its_input(x, gain=None, eps=1e-6):
    h = _wide(x)
    y = h * torch.rsqrt(_mean_square(h) + eps)
    x.data.copy_(y.detach())
    return _times(y, gain, x)


def detached_statistics(x, gain=None, eps=1e-6):
    h = _wide(x)
    return _times(h * torch.rsqrt(_mean_square(h.detach()) + eps), gain, x)


WRONG = [
    value
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_")
]
