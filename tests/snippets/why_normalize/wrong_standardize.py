"""Wrong z-scores that readers meet in the wild. Same signature as standardize."""

import torch


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _parts(x, dim, correction):
    h = _wide(x)
    variance, mean = torch.var_mean(h, dim=dim, correction=correction, keepdim=True)
    return h, mean, variance


def sample_deviation_always(x, dim=-1, correction=0, eps=0.0):
    h, mean, variance = _parts(x, dim, 1)
    return ((h - mean) * torch.rsqrt(variance + eps)).to(x.dtype)


def population_deviation_always(x, dim=-1, correction=0, eps=0.0):
    h, mean, variance = _parts(x, dim, 0)
    return ((h - mean) * torch.rsqrt(variance + eps)).to(x.dtype)


def mean_not_subtracted(x, dim=-1, correction=0, eps=0.0):
    h, _, variance = _parts(x, dim, correction)
    return (h * torch.rsqrt(variance + eps)).to(x.dtype)


def mean_added(x, dim=-1, correction=0, eps=0.0):
    h, mean, variance = _parts(x, dim, correction)
    return ((h + mean) * torch.rsqrt(variance + eps)).to(x.dtype)


def divides_by_the_root_mean_square(x, dim=-1, correction=0, eps=0.0):
    h, mean, _ = _parts(x, dim, correction)
    square = h.square().mean(dim, keepdim=True)
    return ((h - mean) * torch.rsqrt(square + eps)).to(x.dtype)


def divides_by_the_variance(x, dim=-1, correction=0, eps=0.0):
    h, mean, variance = _parts(x, dim, correction)
    return ((h - mean) / (variance + eps)).to(x.dtype)


def eps_outside_the_root(x, dim=-1, correction=0, eps=0.0):
    h, mean, variance = _parts(x, dim, correction)
    return ((h - mean) / (variance.sqrt() + eps)).to(x.dtype)


def eps_ignored(x, dim=-1, correction=0, eps=0.0):
    h, mean, variance = _parts(x, dim, correction)
    return ((h - mean) * torch.rsqrt(variance)).to(x.dtype)


def eps_always_there(x, dim=-1, correction=0, eps=0.0):
    h, mean, variance = _parts(x, dim, correction)
    return ((h - mean) * torch.rsqrt(variance + max(eps, 1e-5))).to(x.dtype)


def mean_of_squares_minus_square_of_mean(x, dim=-1, correction=0, eps=0.0):
    h, mean, _ = _parts(x, dim, correction)
    n = h.numel() / mean.numel()
    variance = h.square().mean(dim, keepdim=True) - mean.square()
    variance = (variance * n / (n - correction)).clamp_min(1e-12)
    return ((h - mean) * torch.rsqrt(variance + eps)).to(x.dtype)


def one_mean_for_the_whole_tensor(x, dim=-1, correction=0, eps=0.0):
    h = _wide(x)
    variance, mean = torch.var_mean(h, correction=correction)
    return ((h - mean) * torch.rsqrt(variance + eps)).to(x.dtype)


def always_the_last_dimension(x, dim=-1, correction=0, eps=0.0):
    h, mean, variance = _parts(x, -1, correction)
    return ((h - mean) * torch.rsqrt(variance + eps)).to(x.dtype)


def median_for_mean(x, dim=-1, correction=0, eps=0.0):
    h, _, variance = _parts(x, dim, correction)
    middle = h
    for d in (dim,) if isinstance(dim, int) else dim:
        middle = middle.median(dim=d, keepdim=True).values
    return ((h - middle) * torch.rsqrt(variance + eps)).to(x.dtype)


def mean_absolute_deviation(x, dim=-1, correction=0, eps=0.0):
    h, mean, _ = _parts(x, dim, correction)
    deviation = (h - mean).abs().mean(dim, keepdim=True)
    return ((h - mean) / (deviation + eps)).to(x.dtype)


def squeezed_between_zero_and_one(x, dim=-1, correction=0, eps=0.0):
    h = _wide(x)
    low, high = h.amin(dim, keepdim=True), h.amax(dim, keepdim=True)
    return ((h - low) / (high - low + eps)).to(x.dtype)


def detached_statistics(x, dim=-1, correction=0, eps=0.0):
    h, mean, variance = _parts(x, dim, correction)
    scale = torch.rsqrt(variance.detach() + eps)
    return ((h - mean.detach()) * scale).to(x.dtype)


def never_upcasts(x, dim=-1, correction=0, eps=0.0):
    mean = x.mean(dim, keepdim=True)
    centred = x - mean
    n = x.numel() / mean.numel()
    variance = centred.square().sum(dim, keepdim=True) / (n - correction)
    return centred * torch.rsqrt(variance + eps)


def returns_the_wide_dtype(x, dim=-1, correction=0, eps=0.0):
    h, mean, variance = _parts(x, dim, correction)
    return (h - mean) * torch.rsqrt(variance + eps)


def overwrites_its_input(x, dim=-1, correction=0, eps=0.0):
    h, mean, variance = _parts(x, dim, correction)
    y = ((h - mean) * torch.rsqrt(variance + eps)).to(x.dtype)
    x.data.copy_(y.detach())
    return y


VARIANTS = [
    value
    for name, value in list(globals().items())
    if callable(value) and not name.startswith("_")
]
