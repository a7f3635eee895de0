"""Attention's gradients as covariances against autograd, and their ratio."""

import pytest
import torch
from torch.nn import functional as F

from snippets.signal_propagation.covariance import (
    attention_gradients,
    gradient_ratio,
)
from tests.same_results import on_views
from tests.wrong import suite

SHAPES = [(1, 4), (2, 1), (5, 8), (7, 3)]


def draw(n, d, scale, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        scale * torch.randn(n, d, generator=generator, dtype=torch.float64) + 0.3
        for _ in range(4)
    ]


def exact(q, k, v, upstream, causal):
    inputs = [x.clone().requires_grad_() for x in (q, k, v)]
    y = F.scaled_dot_product_attention(*(x[None] for x in inputs), is_causal=causal)
    return torch.autograd.grad(y[0], inputs, upstream)


def check_gradients(function):
    for n, d in SHAPES:
        for scale in (1e-3, 1.0, 3.0):
            for causal in (True, False):
                arguments = draw(n, d, scale)
                found = function(*arguments, causal)
                right = exact(*arguments, causal)
                for ours, theirs in zip(found, right, strict=True):
                    assert ours.dtype is theirs.dtype
                    gap = (ours - theirs).abs().max()
                    assert gap <= 1e-11 * (1 + theirs.abs().max())
                    assert gap <= 1e-7 * theirs.abs().max() + 1e-18


def check_equal_tokens_pull_nothing(function):
    q, k, v, upstream = draw(6, 4, 1.0)
    for keys, values in ((k[:1].expand(6, 4), v), (k, v[:1].expand(6, 4))):
        grad_q, _, grad_v = function(q, keys, values, upstream, False)
        assert grad_q.abs().max() < 1e-14
        assert grad_v.norm() > 0.1


def check_first_token_of_a_causal_head(function):
    """It sees itself alone: no choice, no gradient of its query."""
    grad_q, _, _ = function(*draw(5, 4, 1.0), True)
    assert grad_q[0].abs().max() == 0
    assert grad_q[1:].abs().min() > 0


def check_default_is_causal(function):
    arguments = draw(5, 4, 1.0)
    for ours, theirs in zip(function(*arguments), exact(*arguments, True), strict=True):
        assert torch.allclose(ours, theirs)


CHECKS = [
    check_gradients,
    check_equal_tokens_pull_nothing,
    check_first_token_of_a_causal_head,
    check_default_is_causal,
    on_views(*draw(5, 4, 1.0), True),
]


test_right, test_wrong_gradients = suite(attention_gradients, CHECKS)


def head(cosine, n, d, seed):
    """|grad W_Q| / |grad W_V| of a random head whose queries are zero."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x = cosine**0.5 * normal(1, d) + (1 - cosine) ** 0.5 * normal(n, d)
    w_k, w_v = normal(d, d) / d**0.5, normal(d, d) / d**0.5
    zero, upstream = torch.zeros(n, d, dtype=torch.float64), normal(n, d)
    grad_q, _, grad_v = exact(zero, x @ w_k.T, x @ w_v.T, upstream, False)
    return float((grad_q.T @ x).norm() / (grad_v.T @ x).norm())


def check_ratio(function):
    for n in (8, 32):
        for cosine in (0.0, 0.5, 0.95, 0.999):
            found = [head(cosine, n, 192, seed) for seed in range(4)]
            assert function(cosine, n) == pytest.approx(sum(found) / 4, rel=0.12)


test_ratio, test_wrong_ratio = suite(gradient_ratio, [check_ratio])
