"""PB-Relax: the same softmax and LayerNorm, in float64 and in float16."""

import torch
from torch.nn import functional as F

from snippets.sandwich_norm.pb_relax import relaxed_layer_norm, relaxed_softmax
from tests.same_results import on_views
from tests.wrong import suite


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


CHECKS = [
    check_exact,
    check_gradients,
    check_half_range,
    check_dtype,
    on_views(*pair(), 32.0),
]


test_right, test_known_wrong = suite(relaxed_softmax, CHECKS)


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


LAYER_CHECKS = [
    check_larger_eps,
    check_zeros,
    check_large_float16,
    on_views(pair()[0]),
]


test_layer_norm_right, test_known_wrong_layer_norm = suite(
    relaxed_layer_norm, LAYER_CHECKS
)


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
