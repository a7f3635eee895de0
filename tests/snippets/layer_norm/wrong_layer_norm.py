"""Wrong LayerNorms that readers meet in the wild. Same signature as layer_norm."""

import torch


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _affine(y, gain, bias, x):
    if gain is not None:
        y = y * gain.to(y.dtype)
    if bias is not None:
        y = y + bias.to(y.dtype)
    return y.to(x.dtype)


def _centre(h, dim=-1):
    return h - h.mean(dim, keepdim=True)


def _variance(c, dim=-1):
    return c.square().mean(dim, keepdim=True)


def unbiased_variance(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    v = c.square().sum(-1, keepdim=True) / max(x.shape[-1] - 1, 1)
    return _affine(c * torch.rsqrt(v + eps), gain, bias, x)


def eps_outside_the_root(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    return _affine(c / (_variance(c).sqrt() + eps), gain, bias, x)


def annotated_transformer(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    v = c.square().sum(-1, keepdim=True) / max(x.shape[-1] - 1, 1)
    return _affine(c / (v.sqrt() + eps), gain, bias, x)


def eps_missing(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    return _affine(c * torch.rsqrt(_variance(c)), gain, bias, x)


def eps_hard_coded(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    return _affine(c * torch.rsqrt(_variance(c) + 1e-5), gain, bias, x)


def root_of_the_deviation(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    return _affine(c / (_variance(c).sqrt() + eps).sqrt(), gain, bias, x)


def squares_the_denominator(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    return _affine(c / (_variance(c) + eps) ** 2, gain, bias, x)


def divides_by_rsqrt(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    return _affine(c / torch.rsqrt(_variance(c) + eps), gain, bias, x)


def mean_of_squares_minus_square(x, gain=None, bias=None, eps=1e-5):
    h = _wide(x)
    mean = h.mean(-1, keepdim=True)
    v = h.square().mean(-1, keepdim=True) - mean.square()
    return _affine((h - mean) * torch.rsqrt(v + eps), gain, bias, x)


def clamped_mean_of_squares(x, gain=None, bias=None, eps=1e-5):
    h = _wide(x)
    mean = h.mean(-1, keepdim=True)
    v = (h.square().mean(-1, keepdim=True) - mean.square()).clamp_min(0)
    return _affine((h - mean) * torch.rsqrt(v + eps), gain, bias, x)


def mean_square_for_variance(x, gain=None, bias=None, eps=1e-5):
    h = _wide(x)
    return _affine(_centre(h) * torch.rsqrt(_variance(h) + eps), gain, bias, x)


def never_centred(x, gain=None, bias=None, eps=1e-5):
    h = _wide(x)
    v = _variance(_centre(h))
    return _affine(h * torch.rsqrt(v + eps), gain, bias, x)


def mean_added(x, gain=None, bias=None, eps=1e-5):
    h = _wide(x)
    y = h + h.mean(-1, keepdim=True)
    return _affine(y * torch.rsqrt(_variance(_centre(h)) + eps), gain, bias, x)


def root_mean_square_norm(x, gain=None, bias=None, eps=1e-5):
    h = _wide(x)
    return _affine(h * torch.rsqrt(_variance(h) + eps), gain, bias, x)


def sum_for_mean_of_squares(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    v = c.square().sum(-1, keepdim=True)
    return _affine(c * torch.rsqrt(v + eps), gain, bias, x)


def statistics_over_time_and_features(x, gain=None, bias=None, eps=1e-5):
    dims = tuple(range(x.ndim))[-2:]
    c = _centre(_wide(x), dims)
    return _affine(c * torch.rsqrt(_variance(c, dims) + eps), gain, bias, x)


def statistics_over_the_batch(x, gain=None, bias=None, eps=1e-5):
    dims = tuple(range(x.ndim - 1)) or (0,)
    c = _centre(_wide(x), dims)
    return _affine(c * torch.rsqrt(_variance(c, dims) + eps), gain, bias, x)


def gain_ignored(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    return _affine(c * torch.rsqrt(_variance(c) + eps), None, bias, x)


def bias_ignored(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    return _affine(c * torch.rsqrt(_variance(c) + eps), gain, None, x)


def bias_before_the_gain(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    y = c * torch.rsqrt(_variance(c) + eps)
    y = y if bias is None else y + bias.to(y.dtype)
    return _affine(y, gain, None, x)


def one_plus_gain(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    more = None if gain is None else 1 + gain
    return _affine(c * torch.rsqrt(_variance(c) + eps), more, bias, x)


def never_upcasts(x, gain=None, bias=None, eps=1e-5):
    c = _centre(x)
    return _affine(c * torch.rsqrt(_variance(c) + eps), gain, bias, x)


def centres_before_the_upcast(x, gain=None, bias=None, eps=1e-5):
    c = _wide(_centre(x))
    return _affine(c * torch.rsqrt(_variance(c) + eps), gain, bias, x)


def always_float32(x, gain=None, bias=None, eps=1e-5):
    c = _centre(x.float())
    return _affine(c * torch.rsqrt(_variance(c) + eps), gain, bias, x)


def dtype_follows_the_gain(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    y = (c * torch.rsqrt(_variance(c) + eps)).to(x.dtype)
    y = y if gain is None else y * gain
    return y if bias is None else y + bias


def rounds_before_the_gain(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    y = (c * torch.rsqrt(_variance(c) + eps)).to(x.dtype)
    y = y if gain is None else y * gain.to(x.dtype)
    return y if bias is None else y + bias.to(x.dtype)


def eps_as_a_floor(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    return _affine(c * torch.rsqrt(_variance(c).clamp_min(eps)), gain, bias, x)


def hides_nan(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    y = c * torch.rsqrt(_variance(c) + eps)
    return _affine(y.nan_to_num(), gain, bias, x)


def overwrites_its_input(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    y = c * torch.rsqrt(_variance(c) + eps)
    x.data.copy_(c.detach())
    return _affine(y, gain, bias, x)


def detached_mean(x, gain=None, bias=None, eps=1e-5):
    h = _wide(x)
    c = h - h.mean(-1, keepdim=True).detach()
    return _affine(c * torch.rsqrt(_variance(c) + eps), gain, bias, x)


def detached_variance(x, gain=None, bias=None, eps=1e-5):
    c = _centre(_wide(x))
    return _affine(c * torch.rsqrt(_variance(c).detach() + eps), gain, bias, x)


VARIANTS = [
    value
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_")
]
