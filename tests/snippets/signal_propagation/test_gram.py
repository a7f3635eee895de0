"""The predicted Gram matrices, against many random draws and closed forms."""

import math
from functools import cache

import pytest
import torch
from torch.nn import functional as F

from snippets.signal_propagation.gram import (
    after_attention,
    after_feed_forward,
    normalized,
    predict,
)
from snippets.signal_propagation.shares import left, shares
from tests.same_results import on_views
from tests.wrong import suite

N, WIDE = 6, 256


def tokens(seed=0, n=N, d=WIDE):
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(1, d, generator=generator, dtype=torch.float64)
    own = torch.randn(n, d, generator=generator, dtype=torch.float64)
    sizes = torch.linspace(0.5, 2, n, dtype=torch.float64)[:, None]
    return sizes * (0.6 * common + 0.8 * own)


def gram_of(x):
    return x @ x.T / x.shape[-1]


def uneven(n=N, seed=3):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, n, generator=generator, dtype=torch.float64)
    return logits.softmax(dim=-1)


def check_attention_mixes_on_both_sides(function):
    """A turned space keeps inner products exactly, a random matrix in the mean."""
    x = tokens(d=40)
    generator = torch.Generator().manual_seed(1)
    drawn = torch.randn(40, 40, generator=generator, dtype=torch.float64)
    turn = torch.linalg.qr(drawn)[0]
    for weights in (uneven(), uneven().tril() / uneven().tril().sum(1, keepdim=True)):
        found = gram_of(weights @ x @ turn.T)
        assert torch.allclose(function(gram_of(x), weights), found, atol=1e-12)


@cache
def feed_forward_of_draws():
    x, draws = tokens(), 100
    generator = torch.Generator().manual_seed(2)
    found = torch.zeros(N, N, dtype=torch.float64)
    for _ in range(draws):
        up = torch.randn(2 * WIDE, WIDE, generator=generator, dtype=torch.float64)
        down = torch.randn(WIDE, 2 * WIDE, generator=generator, dtype=torch.float64)
        hidden = F.relu(x @ up.T / WIDE**0.5)
        found += gram_of(hidden @ down.T / (2 * WIDE) ** 0.5) / draws
    return found


def check_feed_forward_is_the_mean_over_draws(function):
    assert close(function(gram_of(tokens())), feed_forward_of_draws())


def check_feed_forward_at_its_ends(function):
    """Equal tokens stay equal; opposite ones share no active unit."""
    for size in (0.2, 1.0, 7.0):
        equal = size * torch.ones(3, 3, dtype=torch.float64)
        assert torch.allclose(function(equal), equal / 2)
    opposite = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    assert torch.allclose(function(opposite), torch.eye(2).double() / 2, atol=1e-9)
    right = torch.eye(2, dtype=torch.float64) / 2
    right[0, 1] = right[1, 0] = 1 / (2 * math.pi)
    assert torch.allclose(function(torch.eye(2, dtype=torch.float64)), right)


ATTENTION = [
    check_attention_mixes_on_both_sides,
    on_views(gram_of(tokens(d=40)), uneven()),
]
FEED_FORWARD = [
    check_feed_forward_is_the_mean_over_draws,
    check_feed_forward_at_its_ends,
    on_views(gram_of(tokens(d=40)).abs()),
]


test_attention, test_wrong_attention = suite(after_attention, ATTENTION)
test_feed_forward, test_wrong_feed_forward = suite(after_feed_forward, FEED_FORWARD)


def test_normalized_has_ones_and_keeps_cosines():
    gram = gram_of(tokens())
    found = normalized(gram)
    assert torch.allclose(found.diagonal(), torch.ones(N).double())
    unit = F.normalize(tokens(), dim=-1)
    assert torch.allclose(found, unit @ unit.T)
    assert torch.allclose(normalized(9 * gram), found)


def loop(placement, x, layers, alpha, beta, seed):
    """The stack itself, by hand: equal causal weights, RMSNorm, very wide."""
    generator = torch.Generator().manual_seed(seed)
    n, d = x.shape

    def matrix(rows, columns):
        w = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
        return beta * w / columns**0.5

    def norm(x):
        return x / x.square().mean(dim=-1, keepdim=True).sqrt()

    for _ in range(layers):
        for kind in ("attention", "feed-forward"):
            h = norm(x) if placement == "Pre-Norm" else x
            if kind == "attention":
                h = h @ matrix(d, d).T
                h = torch.stack([h[: t + 1].mean(dim=0) for t in range(n)])
                f = h @ matrix(d, d).T
            else:
                f = F.relu(h @ matrix(2 * d, d).T) @ matrix(d, 2 * d).T
            x = alpha * x + f
            if placement == "Post-Norm":
                x = norm(x)
    return gram_of(x)


CASES = [
    ("Post-Norm", 3, 1.0, 1.0),
    ("Pre-Norm", 3, 1.0, 1.0),
    ("Post-Norm", 3, 6**0.25, 24**-0.25),
    ("Post-Norm", 3, 2.5, 1.0),
    ("Pre-Norm", 2, 1.0, 0.7),
]


def close(found, right):
    """Beside the sizes on the diagonal; a mean of draws is not exact."""
    size = right.diagonal().sqrt()
    return (((found - right) / (size[:, None] * size)).abs() < 0.06).all()


def unit_tokens():
    x = torch.randn(N, WIDE, generator=torch.Generator().manual_seed(5)).double()
    x = x + 0.4 * x[0]
    return x / x.square().mean(dim=-1, keepdim=True).sqrt()


REFERENCE = {}


def check_stack(function):
    x = unit_tokens()
    for case in CASES:
        placement, layers, alpha, beta = case
        if case not in REFERENCE:
            REFERENCE[case] = sum(
                loop(placement, x, layers, alpha, beta, seed) for seed in range(12)
            )
        found = function(placement, gram_of(x), layers, alpha, beta)
        assert close(found, REFERENCE[case] / 12), case


test_stack, test_wrong_stack = suite(
    predict,
    [check_stack, on_views("Pre-Norm", gram_of(tokens(d=40)).abs(), 3, 1.0, 1.0)],
)


@pytest.mark.parametrize("n", [3, 40])
def test_share_says_what_one_attention_layer_leaves(n):
    """The formula of the page: 1 - c shrinks by 1 - s, whatever the tokens."""
    everyone = torch.full((n, n), 1 / n, dtype=torch.float64)
    for cosine in (0.0, 0.3, 0.99):
        gram = torch.full((n, n), cosine, dtype=torch.float64).fill_diagonal_(1)
        branch = after_attention(gram, everyone)
        for alpha in (1.0, 3.0):
            total = alpha**2 * gram + branch
            share = float(branch[0, 0] / total[0, 0])
            after = float(normalized(total)[0, 1])
            assert math.isclose(1 - after, (1 - share) * (1 - cosine), rel_tol=1e-9)


def test_shares():
    assert math.isclose(left(shares("Post-Norm", 5)), 2**-5)
    assert math.isclose(left(shares("Pre-Norm", 9)), 1 / 10)
    assert math.isclose(
        left(shares("branches / sqrt(n)", 10**5)), math.exp(-1), rel_tol=1e-4
    )
    n = 50
    alpha, beta = (2 * n) ** 0.25, (8 * n) ** -0.25
    share = beta**4 / (alpha**2 + beta**4)
    assert math.isclose(left(shares("DeepNorm", n)), (1 - share) ** n)
    assert left(shares("ReZero", 7)) == 1
    assert left([]) == 1


def test_a_stack_of_unrelated_tokens_keeps_more_than_attention_alone():
    """Pre-Norm's difference falls with the root of the depth, not with the depth."""
    kept = {}
    for placement in ("Pre-Norm", "Post-Norm"):
        for layers in (24, 96):
            gram = torch.eye(16, dtype=torch.float64)
            gram = normalized(predict(placement, gram, layers, 1.0, 1.0))
            kept[placement, layers] = (1 - gram).sum().item() / (16 * 15)
            assert kept[placement, layers] > left(shares(placement, layers))
    exponent = math.log(kept["Pre-Norm", 96] / kept["Pre-Norm", 24]) / math.log(4)
    assert math.isclose(exponent, -0.5, abs_tol=0.06)


def test_share_of_an_unknown_placement():
    with pytest.raises(ValueError, match="post"):
        shares("post", 3)
