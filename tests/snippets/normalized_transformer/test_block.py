"""NormalizedBlock against an independent layer in float64, values and gradients."""

import torch

from snippets.normalized_transformer.block import NormalizedBlock, rotate
from tests.same_results import of_module
from tests.snippets.normalized_transformer.float64 import (
    assert_close,
    direction,
    layer,
    states,
    turned,
    values,
)
from tests.wrong import suite

SIZES = (((1, 1, 4), 1, 3), ((2, 7, 12), 3, 31), ((1, 5, 8), 2, 1), ((3, 2, 6), 1, 7))


def built(block, d, heads, inner, seed=0):
    """In float64, no scale at its start, some alphas negative."""
    torch.manual_seed(seed)
    made = block(d, heads, inner).double()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim == 1:
                parameter.mul_(1 + 0.5 * torch.randn_like(parameter))
            else:
                parameter.copy_(torch.randn_like(parameter))
        made.alpha_attention.stored[0] *= -4
        made.alpha_attention.stored[1:] *= 6
        made.alpha_feed_forward.stored *= 6
    return made


def check_values(block):
    for shape, heads, inner in SIZES:
        made, h = built(block, shape[-1], heads, inner), states(shape)
        assert_close(made(h), layer(h, values(made)), 1e-9, 1e-11)


def check_gradients(block):
    shape, heads, inner = SIZES[1]
    made, h = built(block, shape[-1], heads, inner), states(shape).requires_grad_()
    grad = torch.randn(shape, generator=torch.Generator().manual_seed(5)).double()
    inputs = [h, *made.parameters()]
    expected = torch.autograd.grad(layer(h, values(made)), inputs, grad)
    actual = torch.autograd.grad(made(h), inputs, grad, allow_unused=True)
    for a, b in zip(actual, expected, strict=True):
        assert a is not None, "a parameter has no gradient"
        assert_close(a, b, 1e-7, 1e-9 * float(b.abs().max()), "gradient")


def check_stays_on_the_sphere(block):
    made = built(block, 12, 3, 31)
    length = made(states((2, 7, 12))).norm(dim=-1)
    assert_close(length, torch.ones_like(length), 1e-12)


CHECKS = [
    check_values,
    check_gradients,
    check_stays_on_the_sphere,
    *of_module(lambda block: built(block, 12, 3, 31), states((2, 7, 12))),
]


test_right, test_known_wrong = suite(NormalizedBlock, CHECKS)


def test_rotate_turns_pairs_and_keeps_lengths():
    x = states((7, 12))
    assert_close(rotate(x), turned(x), 1e-10, 1e-12)
    assert_close(rotate(x).norm(dim=-1), x.norm(dim=-1), 1e-12)


def test_rotated_products_depend_on_the_distance_only():
    q, k = states((1, 8)).expand(9, 8), states((1, 8), seed=3).expand(9, 8)
    scores = rotate(q) @ rotate(k).T
    for gap in range(-8, 9):
        diagonal = scores.diagonal(gap)
        assert_close(diagonal, diagonal[:1].expand_as(diagonal), 1e-9, 1e-12)


def test_published_rotary_function_keeps_no_lengths():
    a, b = torch.tensor(3.0), torch.tensor(4.0)
    angle = torch.tensor(0.3)
    length = torch.hypot(-b * angle.cos(), a * angle.sin())
    assert abs(float(length) - 5) > 0.5


def test_scores_are_bounded():
    made = built(NormalizedBlock, 12, 3, 31)
    h = states((2, 7, 12))
    q, k = (made.split(each(h)) for each in (made.query, made.key))
    s = made.s_qk().unflatten(0, (3, 1, -1))
    q, k = (s * direction(rotate(each)) for each in (q, k))
    scores = 2 * (q @ k.mT).detach()
    bound = 2 * made.s_qk().detach().square().max()
    assert bool(scores.abs().max() <= bound)


def test_a_factor_of_u_changes_nothing():
    made, h = built(NormalizedBlock, 12, 3, 31), states((2, 7, 12))
    before = made(h)
    with torch.no_grad():
        made.s_u.stored *= 12**0.5  # what the published code adds
    assert_close(made(h), before, 1e-10, 1e-12)


def test_future_is_not_seen():
    made, h = built(NormalizedBlock, 12, 3, 31), states((2, 7, 12))
    other = h.clone()
    other[:, -1] = states((2, 12), seed=4)
    assert_close(made(other)[:, :-1], made(h)[:, :-1], 1e-12, 1e-13)
    assert not torch.equal(made(other)[:, -1], made(h)[:, -1])
