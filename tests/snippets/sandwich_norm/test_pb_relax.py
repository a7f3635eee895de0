"""PB-Relax: the same softmax and LayerNorm, in float64 and in float16."""

import pytest
import torch
from torch.nn import functional as F

from snippets.sandwich_norm.pb_relax import relaxed_layer_norm, relaxed_softmax


def pair(scale=1.0, shape=(5, 7, 13), dtype=torch.float64):
    generator = torch.Generator().manual_seed(sum(shape))
    queries, keys, d = shape
    q = torch.randn(2, queries, d, generator=generator, dtype=torch.float64)
    k = torch.randn(2, keys, d, generator=generator, dtype=torch.float64)
    return (scale * q).to(dtype), (scale * k).to(dtype)


def reference(q, k):
    logits = torch.einsum("...qd,...kd->...qk", q.double(), k.double())
    logits = logits / q.shape[-1] ** 0.5
    weights = (logits - logits.max(-1, keepdim=True).values).exp()
    return weights / weights.sum(-1, keepdim=True)


def close(actual, wanted, tolerance):
    assert bool(actual.isfinite().all()), "not finite"
    gap = float((actual.double() - wanted).abs().detach().max())
    assert gap < tolerance, gap


def check_exact(function):
    for shape in ((1, 1, 1), (5, 7, 13), (3, 31, 64)):
        for scale in (0.01, 1.0, 5.0):
            q, k = pair(scale, shape)
            for relax in (2.0, 32.0, 100.0):
                close(function(q, k, relax), reference(q, k), 1e-12)


def check_gradients(function):
    q, k = (t.requires_grad_() for t in pair())
    upstream = torch.randn(2, 5, 7, dtype=torch.float64).cumsum(-1)
    wanted = torch.autograd.grad(reference(q, k), (q, k), upstream)
    actual = torch.autograd.grad(function(q, k), (q, k), upstream)
    for a, b in zip(actual, wanted, strict=True):
        close(a, b, 1e-10)


def check_half_range(function):
    """Products of 2 million, logits of 250,000: beyond float16's 65504."""
    q = torch.full((1, 2, 64), 180.0, dtype=torch.float16)
    k = torch.full((1, 3, 64), 180.0, dtype=torch.float16)
    k[:, 1] = -180.0
    wanted = torch.tensor([0.5, 0.0, 0.5]).expand(1, 2, 3).double()
    close(function(q, k), wanted, 1e-3)
    q[:, 1], k[:, 1] = -180.0, 180.0  # the second row's maximum is far lower
    close(function(q, k), torch.full((1, 2, 3), 1 / 3).double(), 1e-3)


def check_dtype(function):
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        q, k = pair(dtype=dtype)
        y = function(q, k)
        assert y.dtype == dtype
        close(y, reference(q, k), 8 * torch.finfo(dtype).eps)


CHECKS = [check_exact, check_gradients, check_half_range, check_dtype]


def _finish(small, relax):
    return torch.softmax(small * relax, dim=-1)


def divides_the_finished_logits(q, k, relax=32.0):
    small = ((q / q.shape[-1] ** 0.5) @ k.mT) / relax
    return _finish(small - small.amax(-1, keepdim=True), relax)


def scales_back_before_the_maximum(q, k, relax=32.0):
    logits = (q / (relax * q.shape[-1] ** 0.5)) @ k.mT * relax
    return torch.softmax(logits - logits.amax(-1, keepdim=True), dim=-1)


def never_scales_back(q, k, relax=32.0):
    small = (q / (relax * q.shape[-1] ** 0.5)) @ k.mT
    return torch.softmax(small - small.amax(-1, keepdim=True), dim=-1)


def maximum_not_scaled_back(q, k, relax=32.0):
    small = (q / (relax * q.shape[-1] ** 0.5)) @ k.mT
    return torch.softmax(small * relax - small.amax(-1, keepdim=True), dim=-1)


def relax_fixed(q, k, relax=32.0):
    small = (q / (relax * q.shape[-1] ** 0.5)) @ k.mT
    return _finish(small - small.amax(-1, keepdim=True), 32.0)


def root_of_d_forgotten(q, k, relax=32.0):
    small = (q / relax) @ k.mT
    return _finish(small - small.amax(-1, keepdim=True), relax)


def divides_queries_and_keys(q, k, relax=32.0):
    small = (q / (relax * q.shape[-1] ** 0.5)) @ (k / relax).mT
    return _finish(small - small.amax(-1, keepdim=True), relax)


def maximum_over_the_queries(q, k, relax=32.0):
    small = (q / (relax * q.shape[-1] ** 0.5)) @ k.mT
    return torch.exp((small - small.amax(-2, keepdim=True)) * relax)


def maximum_over_everything(q, k, relax=32.0):
    small = (q / (relax * q.shape[-1] ** 0.5)) @ k.mT
    return _finish(small - small.amax(), relax)


def softmax_over_the_queries(q, k, relax=32.0):
    small = (q / (relax * q.shape[-1] ** 0.5)) @ k.mT
    return torch.softmax((small - small.amax(-1, keepdim=True)) * relax, dim=-2)


def scales_last(q, k, relax=32.0):
    return torch.softmax((q @ k.mT) / q.shape[-1] ** 0.5, dim=-1)


def returns_float32(q, k, relax=32.0):
    return relaxed_softmax(q.float(), k.float(), relax)


VARIANTS = [
    divides_the_finished_logits,
    scales_back_before_the_maximum,
    never_scales_back,
    maximum_not_scaled_back,
    relax_fixed,
    root_of_d_forgotten,
    divides_queries_and_keys,
    maximum_over_the_queries,
    maximum_over_everything,
    softmax_over_the_queries,
    scales_last,
    returns_float32,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(relaxed_softmax)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


# LayerNorm -------------------------------------------------------------------


def check_larger_eps(function):
    for shape in ((7,), (3, 5), (2, 3, 31)):
        for eps in (1e-5, 1e-2):
            for offset in (3, -30):
                generator = torch.Generator().manual_seed(0)
                x = torch.randn(shape, generator=generator, dtype=torch.float64)
                x = (20 * x + offset).requires_grad_()
                largest = x.detach().abs().amax(-1, keepdim=True)
                z = x - x.mean(-1, keepdim=True)
                square = z.square().mean(-1, keepdim=True)
                wanted = z / (square + eps * largest**2).sqrt()
                y = function(x, eps)
                close(y, wanted.detach(), 1e-12)
                upstream = 1 + wanted.detach() ** 3
                (ours,) = torch.autograd.grad(y, x, upstream)
                (theirs,) = torch.autograd.grad(wanted, x, upstream)
                close(ours, theirs, 1e-12)


def check_zeros(function):
    assert bool((function(torch.zeros(2, 4)) == 0).all())


def check_large_float16(function):
    x = torch.tensor([[6e4, -6e4, 3e4, 0.0]], dtype=torch.float16)
    wanted = F.layer_norm(x.double(), (4,), eps=0.0)
    y = function(x)
    assert y.dtype == torch.float16
    close(y, wanted, 5e-3)


LAYER_CHECKS = [check_larger_eps, check_zeros, check_large_float16]


def _largest(x):
    return x.abs().amax(-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)


def _norm(x, eps):
    return F.layer_norm(x, x.shape[-1:], eps=eps)


def maximum_over_the_tensor(x, eps=1e-5):
    return _norm(x / x.abs().max().detach().clamp_min(1e-6), eps)


def maximum_with_its_sign(x, eps=1e-5):
    return _norm(x / x.amax(-1, keepdim=True).detach(), eps)


def gradient_through_the_maximum(x, eps=1e-5):
    return _norm(x / _largest(x), eps)


def plain_layer_norm(x, eps=1e-5):
    return _norm(x, eps)


def zeros_divided_by_zero(x, eps=1e-5):
    return _norm(x / x.abs().amax(-1, keepdim=True).detach(), eps)


def divided_by_the_root_mean_square(x, eps=1e-5):
    square = x.detach().square().mean(-1, keepdim=True)
    return _norm(x / square.sqrt().clamp_min(1e-6), eps)


def multiplied_back(x, eps=1e-5):
    largest = _largest(x).detach()
    return _norm(x / largest, eps) * largest


def variance_in_float16(x, eps=1e-5):
    z = x - x.mean(-1, keepdim=True)
    largest = _largest(x).detach()
    return z / (z.square().mean(-1, keepdim=True) + eps * largest**2).sqrt()


LAYER_VARIANTS = [
    maximum_over_the_tensor,
    maximum_with_its_sign,
    gradient_through_the_maximum,
    plain_layer_norm,
    zeros_divided_by_zero,
    divided_by_the_root_mean_square,
    multiplied_back,
    variance_in_float16,
]


@pytest.mark.parametrize("check", LAYER_CHECKS, ids=lambda f: f.__name__)
def test_layer_norm_right(check):
    check(relaxed_layer_norm)


@pytest.mark.parametrize("variant", LAYER_VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong_layer_norm(variant, known_wrong):
    known_wrong.rejected_by(LAYER_CHECKS, variant)


def test_a_maximum_over_the_tensor_couples_tokens():
    """CogView's LayerNorm divides by the maximum of the whole tensor."""

    def cogview(x):
        return F.layer_norm(x / (x.abs().max() / 8), x.shape[-1:])

    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0)).double()
    later = x.clone()
    later[2] *= 1e4
    assert float((cogview(later)[:2] - cogview(x)[:2]).abs().max()) > 0.1
    same = relaxed_layer_norm(later)[:2] - relaxed_layer_norm(x)[:2]
    assert float(same.abs().max()) == 0
