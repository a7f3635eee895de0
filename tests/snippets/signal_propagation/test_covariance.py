"""Attention's gradients as covariances against autograd, and their ratio."""

import pytest
import torch
from torch.nn import functional as F

from snippets.signal_propagation.covariance import (
    attention_gradients,
    gradient_ratio,
)

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
]


def weights_of(q, k, causal):
    logits = q @ k.T * q.shape[-1] ** -0.5
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits).triu(1) > 0, -torch.inf)
    return logits.softmax(dim=-1)


def values_not_centred(q, k, v, upstream, causal=True):
    a, scale = weights_of(q, k, causal), q.shape[-1] ** -0.5
    pull = a * (upstream @ v.T)
    return scale * pull @ k, scale * pull.T @ q, a.T @ upstream


def plain_mean_for_the_weighted(q, k, v, upstream, causal=True):
    a, scale = weights_of(q, k, causal), q.shape[-1] ** -0.5
    pull = a * (upstream @ (v - v.mean(dim=0)).T)
    return scale * pull @ k, scale * pull.T @ q, a.T @ upstream


def covariance_with_equal_weights(q, k, v, upstream, causal=True):
    scale = q.shape[-1] ** -0.5
    n = len(q)
    cov = (k - k.mean(dim=0)).T @ (v - v.mean(dim=0)) / n
    _, grad_k, grad_v = attention_gradients(q, k, v, upstream, causal)
    return scale * upstream @ cov.T, grad_k, grad_v


def unbiased_covariance(q, k, v, upstream, causal=True):
    grad_q, grad_k, grad_v = attention_gradients(q, k, v, upstream, causal)
    n = max(len(q), 2)
    return grad_q * n / (n - 1), grad_k, grad_v


def covariance_transposed(q, k, v, upstream, causal=True):
    a, scale = weights_of(q, k, causal), q.shape[-1] ** -0.5
    apart_k, apart_v = k - (a @ k)[:, None], v - (a @ v)[:, None]
    grad_q = scale * torch.einsum("ts,tsi,tsj,ti->tj", a, apart_k, apart_v, upstream)
    return grad_q, *attention_gradients(q, k, v, upstream, causal)[1:]


def scale_forgotten(q, k, v, upstream, causal=True):
    root = q.shape[-1] ** 0.5
    grad_q, grad_k, grad_v = attention_gradients(q, k, v, upstream, causal)
    return root * grad_q, root * grad_k, grad_v


def scale_twice(q, k, v, upstream, causal=True):
    root = q.shape[-1] ** 0.5
    grad_q, grad_k, grad_v = attention_gradients(q, k, v, upstream, causal)
    return grad_q / root, grad_k / root, grad_v


def queries_and_keys_exchanged(q, k, v, upstream, causal=True):
    grad_q, grad_k, grad_v = attention_gradients(q, k, v, upstream, causal)
    return grad_k, grad_q, grad_v


def weights_not_transposed(q, k, v, upstream, causal=True):
    grads = attention_gradients(q, k, v, upstream, causal)
    return *grads[:2], weights_of(q, k, causal) @ upstream


def mask_forgotten(q, k, v, upstream, causal=True):
    return attention_gradients(q, k, v, upstream, False)


def always_causal(q, k, v, upstream, causal=True):
    return attention_gradients(q, k, v, upstream, True)


def masks_itself_too(q, k, v, upstream, causal=True):
    if not causal or len(q) == 1:
        return attention_gradients(q, k, v, upstream, causal)
    logits = q @ k.T * q.shape[-1] ** -0.5
    logits = logits.masked_fill(torch.ones_like(logits).triu(0) > 0, -1e9)
    a, scale = logits.softmax(dim=-1), q.shape[-1] ** -0.5
    pull = a * ((upstream @ v.T) - (upstream * (a @ v)).sum(dim=1, keepdim=True))
    return scale * pull @ k, scale * pull.T @ q, a.T @ upstream


def variance_of_values_alone(q, k, v, upstream, causal=True):
    a, scale = weights_of(q, k, causal), q.shape[-1] ** -0.5
    apart_v = v - (a @ v)[:, None]
    grad_q = scale * torch.einsum("ts,tsi,tsj,tj->ti", a, apart_v, apart_v, upstream)
    return grad_q, *attention_gradients(q, k, v, upstream, causal)[1:]


def test_right():
    for check in CHECKS:
        check(attention_gradients)


@pytest.mark.parametrize(
    "variant",
    [
        values_not_centred,
        plain_mean_for_the_weighted,
        covariance_with_equal_weights,
        unbiased_covariance,
        covariance_transposed,
        scale_forgotten,
        scale_twice,
        queries_and_keys_exchanged,
        weights_not_transposed,
        mask_forgotten,
        always_causal,
        masks_itself_too,
        variance_of_values_alone,
    ],
    ids=lambda v: v.__name__,
)
def test_wrong_gradients(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


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


def not_linear_in_the_distance(cosine, tokens):
    return (1 - cosine) ** 0.5 / (1 + (tokens - 1) * cosine) ** 0.5


def squared_for_the_norm(cosine, tokens):
    return gradient_ratio(cosine, tokens) ** 2


def number_of_tokens_ignored(cosine, tokens):
    return 1 - cosine


def root_of_the_tokens_always(cosine, tokens):
    return (1 - cosine) / tokens**0.5


def one_token_too_many(cosine, tokens):
    return (1 - cosine) / (1 + (tokens + 1) * cosine) ** 0.5 * (1 - 1 / tokens)


@pytest.mark.parametrize(
    "variant",
    [
        not_linear_in_the_distance,
        squared_for_the_norm,
        number_of_tokens_ignored,
        root_of_the_tokens_always,
        one_token_too_many,
    ],
    ids=lambda v: v.__name__,
)
def test_wrong_ratio(variant, known_wrong):
    known_wrong.rejected_by([check_ratio], variant)


def test_ratio():
    check_ratio(gradient_ratio)
