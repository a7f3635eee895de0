"""The small functions of the page and the claims that it reads off them."""

import math

import pytest
import torch
from torch.nn import functional as F

from snippets.qk_norm.attention import Attention
from snippets.qk_norm.axis import sharded_rms_norm
from snippets.qk_norm.bound import logit_bound, worst_pair
from snippets.qk_norm.entropy import attention_entropy, softmax_jacobian
from snippets.qk_norm.norms import l2_norm
from snippets.qk_norm.rope import rotate
from snippets.rms_norm.reference import RMSNorm, rms_norm
from tests.same_results import on_views
from tests.snippets.qk_norm.float64 import assert_close
from tests.wrong import suite


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


# Entropy ----------------------------------------------------------------------


def test_entropy_equals_the_sum():
    logits = 3 * torch.randn(4, 5, 9, dtype=torch.float64)
    p = torch.exp(logits) / torch.exp(logits).sum(-1, keepdim=True)
    assert_close(attention_entropy(logits), -(p * p.log()).sum(-1), 1e-12)


def test_entropy_of_masked_and_saturated_rows():
    row = torch.tensor([0.0, 0.0, -math.inf])
    assert float(attention_entropy(row)) == pytest.approx(math.log(2))
    assert float(attention_entropy(torch.tensor([1e5, 0.0, -1e5]))) == 0


def test_jacobian_equals_autograd():
    logits = torch.randn(7, dtype=torch.float64)
    expected = torch.autograd.functional.jacobian(lambda z: z.softmax(-1), logits)
    assert_close(softmax_jacobian(logits), expected, 1e-12)
    many = torch.randn(2, 3, 5, dtype=torch.float64)
    assert_close(softmax_jacobian(many)[1, 2], softmax_jacobian(many[1, 2]), 1e-12)


def test_jacobian_vanishes_as_the_logits_grow():
    logits = torch.randn(50, 128, dtype=torch.float64)
    sizes = [float(softmax_jacobian(s * logits).norm()) for s in (4, 16, 64, 1000)]
    assert sizes == sorted(sizes, reverse=True)


# L2 --------------------------------------------------------------------------


def check_l2(norm):
    for scale in (1e-3, 1.0, 1e3):
        x = (scale * torch.randn(3, 4, 7, dtype=torch.float64)).requires_grad_()
        grad_y = torch.randn_like(x)
        length = torch.sqrt((x.detach() ** 2).sum(-1, keepdim=True) + 1e-4)
        expected = x.detach() / length
        assert_close(norm(x, 1e-4), expected, 1e-12)
        (grad,) = torch.autograd.grad(norm(x, 1e-4), x, grad_y)
        along = (grad_y * expected).sum(-1, keepdim=True)
        assert_close(grad, (grad_y - expected * along) / length, 1e-10)
    half = (300 * torch.ones(2, 64)).half()
    assert norm(half, 1e-6).dtype == torch.float16
    assert_close(norm(half, 1e-6), torch.full((2, 64), 0.125), 1e-3)


test_l2, test_known_wrong = suite(
    l2_norm, [check_l2, on_views(torch.randn(3, 4, 7), 1e-4)]
)


def test_l2_with_the_root_of_the_width_is_rms_norm():
    """Same logits: width ** -0.5 behind RMSNorm, width ** 0.5 behind L2."""
    q, k = torch.randn(2, 9, 16, dtype=torch.float64)
    ours = l2_norm(q, 0.0) @ l2_norm(k, 0.0).T * 16**0.5
    assert_close(ours, rms_norm(q, eps=0.0) @ rms_norm(k, eps=0.0).T / 16**0.5, 1e-12)


def test_l2_divided_by_the_root_cannot_leave_uniform():
    """Whatever q and k are: weights differ by at most exp(2 / sqrt(width))."""
    q, k = torch.randn(2, 50, 64, dtype=torch.float64)
    k[0] = q[0]
    weights = (l2_norm(100 * q) @ l2_norm(100 * k).T / 8).softmax(-1)
    ratio = weights.amax(-1) / weights.amin(-1)
    assert float(ratio.max()) <= math.exp(2 / 8) + 1e-12


# Heads or the whole projection --------------------------------------------------


@pytest.mark.parametrize("sizes", [(4,), (3, 5), (1, 2, 7)])
def test_sharded_equals_whole(sizes):
    x = 5 * torch.randn(2, 3, sum(sizes), dtype=torch.float64)
    shards = sharded_rms_norm(list(x.split(sizes, -1)), 1e-3)
    assert_close(torch.cat(shards, -1), rms_norm(x, eps=1e-3), 1e-12)


def test_loud_head_silences_the_others_in_the_whole_projection():
    torch.manual_seed(0)
    x = torch.randn(1, 6, 24, dtype=torch.float64)
    for place, moved in (("head", False), ("projection", True)):
        attention = Attention(24, 3, norm=RMSNorm, place=place).double()
        before = attention.logits(x).detach()
        with torch.no_grad():
            attention.query.weight[:8] *= 50  # the first head alone
        after = attention.logits(x).detach()
        gap = (after - before)[:, 1:].abs().max()
        assert bool(gap > 0.1) is moved


# RoPE ------------------------------------------------------------------------------


def test_norm_without_gain_commutes_with_rope():
    x = torch.randn(11, 10, dtype=torch.float64)
    assert_close(rotate(rms_norm(x)), rms_norm(rotate(x)), 1e-12)
    assert_close(rotate(l2_norm(x)), l2_norm(rotate(x)), 1e-12)
    paired = (torch.rand(5, dtype=torch.float64) + 0.5).repeat(2)
    assert_close(rotate(rms_norm(x, paired)), rms_norm(rotate(x), paired), 1e-12)
    neighbours = (torch.rand(5, dtype=torch.float64) + 0.5).repeat_interleave(2)
    gap = rotate(rms_norm(x, neighbours)) - rms_norm(rotate(x), neighbours)
    assert float(gap.abs().max()) > 0.01


def test_a_gain_after_rope_costs_relative_positions():
    gain = torch.rand(8, dtype=torch.float64) + 0.5
    q, k = torch.randn(2, 1, 8, dtype=torch.float64).expand(2, 40, 8)
    orders = {
        "before": lambda x: rotate(rms_norm(x, gain)),
        "after": lambda x: rms_norm(rotate(x), gain),
        "after, free": lambda x: rms_norm(rotate(x)),
    }
    spread = {
        name: float((order(q) @ order(k).T).diagonal(-3).std())
        for name, order in orders.items()
    }
    assert spread["before"] < 1e-12
    assert spread["after, free"] < 1e-12
    assert spread["after"] > 0.1


# The bound -----------------------------------------------------------------------


def exact_bound(q_gain, k_gain, rotary):
    """Spectral norms of pairs, over angles; zero and a right angle are among them."""
    width = len(q_gain)
    best = 0.0
    for i in range(width // 2):
        pair = [i, i + width // 2]
        for step in range(37 if rotary else 1):
            c, s = math.cos(step * math.pi / 36), math.sin(step * math.pi / 36)
            turn = torch.tensor([[c, -s], [s, c]], dtype=torch.float64)
            form = q_gain[pair].diag() @ turn @ k_gain[pair].diag()
            best = max(best, float(torch.linalg.matrix_norm(form, 2)))
    return width**0.5 * best


def check_bound(bound):
    """Neither below the largest logit nor above it."""
    torch.manual_seed(1)
    for width in (2, 6, 14):
        for rotary in (False, True):
            for _ in range(8):
                q_gain, k_gain = torch.randn(2, width, dtype=torch.float64)
                copies = q_gain.clone(), k_gain.clone()
                value = float(bound(q_gain, k_gain, rotary))
                exact = exact_bound(q_gain, k_gain, rotary)
                assert abs(value - exact) < 1e-9 * exact, (width, rotary)
                assert torch.equal(q_gain, copies[0])
                assert torch.equal(k_gain, copies[1])


test_bound, test_known_wrong_bound = suite(
    logit_bound, [check_bound, on_views(torch.randn(8), torch.randn(8), True)]
)


def test_the_bound_without_rope_holds_with_the_norms_after_it():
    q_gain, k_gain = torch.ones(2, 8, dtype=torch.float64)
    q_gain[0], k_gain[4] = 3, 3
    q, k = 10 * torch.randn(2, 300, 8, dtype=torch.float64)
    logits = rms_norm(rotate(q), q_gain) @ rms_norm(rotate(k), k_gain).T / 8**0.5
    bound = float(logit_bound(q_gain, k_gain, rotary=False))
    assert float(logits.abs().max()) <= bound
    found = worst_pair(q_gain, k_gain, 400)
    assert float(found) > bound


def test_slow_pairs_stay_below_the_bound():
    q_gain, k_gain = torch.ones(2, 64, dtype=torch.float64)
    q_gain[31], k_gain[63] = 3, 3
    found = float(worst_pair(q_gain, k_gain, 400))
    assert found < 0.5 * float(logit_bound(q_gain, k_gain, rotary=True))


def test_one_key_gets_at_most_this_weight():
    b, keys = 2.0, 9
    row = torch.full((keys,), -b, dtype=torch.float64)
    row[0] = b
    most = 1 / (1 + (keys - 1) * math.exp(-2 * b))
    assert float(row.softmax(-1)[0]) == pytest.approx(most)
    others = b * (2 * torch.rand(500, keys, dtype=torch.float64) - 1)
    assert float(others.softmax(-1).max()) <= most


@pytest.mark.parametrize("rotary", [False, True])
def test_no_logit_is_above_the_bound(rotary):
    torch.manual_seed(0)
    for _ in range(20):
        q_gain, k_gain = 2 * torch.randn(2, 8, dtype=torch.float64)
        bound = logit_bound(q_gain, k_gain, rotary)
        q, k = 10 * torch.randn(2, 300, 8, dtype=torch.float64)
        loudest = (q_gain * k_gain).abs().argmax()
        q[0], k[0] = 0, 0
        q[0, loudest] = k[0, loudest] = 1.0
        q, k = rms_norm(q, q_gain), rms_norm(k, k_gain)
        if rotary:
            q, k = rotate(q), rotate(k)
        logits = q @ k.T / 8**0.5
        assert float(logits.abs().max()) <= float(bound)
        if not rotary:
            assert float(logits[0, 0].abs()) == pytest.approx(float(bound), rel=1e-4)


def test_with_rope_the_bound_without_it_is_broken():
    q_gain, k_gain = torch.ones(2, 8, dtype=torch.float64)
    q_gain[0], k_gain[4] = 3, 3
    found = worst_pair(q_gain, k_gain, 400)
    assert float(found) > 2.9 * float(logit_bound(q_gain, k_gain, rotary=False))
    assert float(found) <= float(logit_bound(q_gain, k_gain, rotary=True))


def test_the_worst_pair_is_the_spectral_norm():
    q_gain, k_gain = torch.randn(2, 6, dtype=torch.float64)
    form = torch.diag(q_gain * k_gain)
    expected = 6**0.5 * torch.linalg.matrix_norm(form, 2)
    assert_close(worst_pair(q_gain, k_gain, 1), expected, 1e-12)


def test_one_vector_of_all_heads_has_a_looser_bound():
    """One head may take the length of all of them."""
    heads, width = 4, 8
    q = torch.zeros(heads * width, dtype=torch.float64)
    q[:width] = torch.randn(width, dtype=torch.float64)
    head = rms_norm(q, eps=0.0)[:width]
    logit = head @ head / width**0.5
    assert float(logit) == pytest.approx(heads * width**0.5)


def cosine(a, b):
    return float(F.cosine_similarity(a.detach().flatten(), b.flatten(), dim=0))


# Gradients ------------------------------------------------------------------------


def test_gradient_of_a_normed_projection():
    torch.manual_seed(0)
    x = torch.randn(2, 7, 24, dtype=torch.float64)
    grad_y = torch.randn_like(x)
    for place in ("head", "rotated", "projection"):
        attention = Attention(24, 3, norm=RMSNorm, place=place).double()
        weight = attention.query.weight
        (near,) = torch.autograd.grad(attention(x), weight, grad_y)
        with torch.no_grad():
            weight *= 1000  # far from eps
        (far,) = torch.autograd.grad(attention(x), weight, grad_y)
        for rows, grad in zip(weight.split(8), far.split(8), strict=True):
            if place != "projection":  # each head alone
                along = (
                    (rows * grad).detach().sum() / rows.detach().norm() / grad.norm()
                )
                assert abs(float(along)) < 1e-6
        along = (weight * far).detach().sum() / weight.detach().norm() / far.norm()
        assert abs(float(along)) < 1e-6
        assert_close(1000 * far, near, 1e-3)


def test_gradients_of_a_replicated_key_head_are_added():
    """Two devices with two query heads each share one key head: γ's parts add up."""
    q, grad = torch.randn(2, 4, 5, 6, dtype=torch.float64)
    k, v = torch.randn(2, 1, 5, 6, dtype=torch.float64)
    gain = torch.randn(6, dtype=torch.float64, requires_grad=True)

    def gradient(heads: slice):
        keys = rms_norm(k, gain).expand_as(q[heads])
        y = F.scaled_dot_product_attention(q[heads], keys, v.expand_as(q[heads]))
        return torch.autograd.grad(y, gain, grad[heads])[0]

    one, two, whole = map(gradient, (slice(0, 2), slice(2, 4), slice(0, 4)))
    assert_close(one + two, whole, 1e-12)
    assert not torch.allclose(one, whole, rtol=0.1)
