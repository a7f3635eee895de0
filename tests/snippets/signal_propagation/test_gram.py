"""The predicted Gram matrices, against many random draws and closed forms."""

import math
from functools import cache

import pytest
import torch
from torch.nn import functional as F

from snippets.signal_propagation import gram as module
from snippets.signal_propagation.gram import (
    after_attention,
    after_feed_forward,
    normalized,
    predict,
)
from snippets.signal_propagation.shares import left, shares

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


ATTENTION = [check_attention_mixes_on_both_sides]
FEED_FORWARD = [
    check_feed_forward_is_the_mean_over_draws,
    check_feed_forward_at_its_ends,
]


def weights_on_one_side(gram, weights):
    return weights @ gram


def weights_transposed(gram, weights):
    return weights.T @ gram @ weights


def weights_squared(gram, weights):
    return (weights * weights) @ gram @ (weights * weights).T


def equal_weights_assumed(gram, weights):
    return after_attention(gram, torch.full_like(weights, 1 / len(weights)))


def nothing_mixed(gram, weights):
    return gram


def half_forgotten(gram):
    return 2 * after_feed_forward(gram)


def linear(gram):
    return gram / 2


def lengths_forgotten(gram):
    return after_feed_forward(normalized(gram))


def mean_of_relu_removed(gram):
    size = gram.diagonal().sqrt()
    return after_feed_forward(gram) - size[:, None] * size / (2 * math.pi)


def angle_of_the_sine(gram):
    size = gram.diagonal().sqrt()
    size = size[:, None] * size
    angle = (gram / size).clamp(-1, 1).arccos()
    return size * (angle.sin() + angle * angle.cos()) / (2 * math.pi)


def kernel_of_degree_zero(gram):
    size = gram.diagonal().sqrt()
    size = size[:, None] * size
    return size * (math.pi - (gram / size).clamp(-1, 1).arccos()) / (2 * math.pi)


def test_right():
    for check in ATTENTION:
        check(after_attention)
    for check in FEED_FORWARD:
        check(after_feed_forward)


@pytest.mark.parametrize(
    "variant",
    [
        weights_on_one_side,
        weights_transposed,
        weights_squared,
        equal_weights_assumed,
        nothing_mixed,
    ],
    ids=lambda v: v.__name__,
)
def test_wrong_attention(variant, known_wrong):
    known_wrong.rejected_by(ATTENTION, variant)


@pytest.mark.parametrize(
    "variant",
    [
        half_forgotten,
        linear,
        lengths_forgotten,
        mean_of_relu_removed,
        angle_of_the_sine,
        kernel_of_degree_zero,
    ],
    ids=lambda v: v.__name__,
)
def test_wrong_feed_forward(variant, known_wrong):
    known_wrong.rejected_by(FEED_FORWARD, variant)


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


def _changed(**names):
    """predict with some of its functions exchanged."""

    def changed(*arguments):
        with pytest.MonkeyPatch.context() as patch:
            for name, function in names.items():
                patch.setattr(module, name, function)
            return predict(*arguments)

    return changed


def bidirectional(gram, weights):
    return after_attention(gram, torch.full_like(weights, 1 / len(weights)))


mask_forgotten = _changed(after_attention=bidirectional)
attention_forgotten = _changed(after_attention=nothing_mixed)
relu_forgotten = _changed(after_feed_forward=linear)
never_normalized = _changed(normalized=lambda gram: gram)


def pre_and_post_exchanged(placement, *arguments):
    other = {"Post-Norm": "Pre-Norm", "Pre-Norm": "Post-Norm"}
    return predict(other[placement], *arguments)


def alpha_not_squared(placement, gram, layers, alpha, beta):
    return predict(placement, gram, layers, alpha**0.5, beta)


def one_beta_of_two(placement, gram, layers, alpha, beta):
    return predict(placement, gram, layers, alpha, beta**0.5)


def alpha_ignored(placement, gram, layers, alpha, beta):
    return predict(placement, gram, layers, 1.0, beta)


def sublayers_for_layers(placement, gram, layers, alpha, beta):
    return predict(placement, gram, 2 * layers, alpha, beta)


WRONG_STACKS = [
    mask_forgotten,
    attention_forgotten,
    relu_forgotten,
    never_normalized,
    pre_and_post_exchanged,
    alpha_not_squared,
    one_beta_of_two,
    alpha_ignored,
    sublayers_for_layers,
]
for _name, _variant in list(globals().items()):
    if any(_variant is each for each in WRONG_STACKS):
        _variant.__name__ = _name


def test_stack():
    check_stack(predict)


@pytest.mark.parametrize("variant", WRONG_STACKS, ids=lambda v: v.__name__)
def test_wrong_stack(variant, known_wrong):
    known_wrong.rejected_by([check_stack], variant)


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


def test_share_of_an_unknown_placement():
    with pytest.raises(ValueError, match="post"):
        shares("post", 3)
