"""Each right version of the museum again, from the definition, in float64."""

import torch
from torch.nn import functional as F

from snippets.bugs import axis, formula, placement, precision, soft_cap
from snippets.rms_norm.reference import rms_norm


def _norm(x, gain, eps):
    return (
        gain
        * x
        / (torch.einsum("...d,...d->...", x, x)[..., None] / x.shape[-1] + eps) ** 0.5
    )


def _one_plus(x, gain, eps):
    return _norm(x, gain + 1, eps)


def _per_head(x, gain, eps):
    parts = x.chunk(4, dim=-1)
    return gain * torch.cat(
        [_norm(p, torch.ones_like(p[..., :1]), eps) for p in parts], -1
    )


def _layer_norm(x, gain, eps):
    return F.layer_norm(x, x.shape[-1:], gain, None, eps)


def _pre_norm(x, gain, eps):
    return x + torch.tanh(_norm(x, gain, eps))


def _deepnorm(x, gain, eps):
    return _norm((2 * 100) ** 0.25 * x + torch.tanh(x), gain, eps)


def _capped(x, gain, eps):
    e = torch.exp(-2 * (x * gain).abs() / 50)
    return 50 * (x * gain).sign() * (1 - e) / (1 + e)


REFERENCES = {
    rms_norm: _norm,
    formula.one_plus: _one_plus,
    axis.per_head: _per_head,
    axis.across_heads: _norm,
    precision.centred_first: _layer_norm,
    placement.pre_norm: _pre_norm,
    placement.deepnorm: _deepnorm,
    soft_cap.capped: _capped,
}
