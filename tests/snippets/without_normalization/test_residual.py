"""ScaledResidual, fixup and the stacks: what the page says of deep networks."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from snippets.without_normalization.cloud import cloud
from snippets.without_normalization.residual import ScaledResidual, fixup
from snippets.without_normalization.stack import stack
from tests.same_results import of_module
from tests.snippets.without_normalization.float64 import assert_close, tokens
from tests.wrong import suite


def body(d=5, inner=7, layers=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    widths = [d, *[inner] * (layers - 1), d]
    modules = []
    for a, b in pairwise(widths):
        modules += [nn.Linear(a, b), nn.Tanh()]
        nn.init.normal_(modules[-2].weight, generator=generator)
        nn.init.normal_(modules[-2].bias, generator=generator)
    return nn.Sequential(*modules[:-1]).double()


# One branch ------------------------------------------------------------------


def check_starts_as_the_identity(residual):
    x = tokens((3, 5))
    assert torch.equal(residual(body()).double()(x), x), "moves at the start"


def check_value_and_gradient(residual):
    x, grad_y = tokens((3, 5)), tokens((3, 5), seed=1)
    inner = body()
    block = residual(inner).double()
    with torch.no_grad():
        block.alpha.fill_(0.37)
    f = inner(x).detach()
    assert_close(block(x), x + 0.37 * f, 1e-12, 1e-12)
    block(x).backward(grad_y)
    assert_close(block.alpha.grad, (grad_y * f).sum(), 1e-10)
    wanted = 0.37 * grad_y.sum(0)  # the last bias of the branch
    grad = inner[-1].bias.grad
    assert grad is not None, "the branch learns nothing"
    assert_close(grad, wanted, 1e-10, 1e-12)


def check_learns_from_the_start(residual):
    block = residual(body()).double()
    block(tokens((3, 5))).backward(tokens((3, 5), seed=1))
    grad = block.alpha.grad
    assert grad is not None and float(grad.abs()) > 1e-3, "alpha has no gradient"


def check_one_number(residual):
    block = residual(body())
    assert block.alpha.numel() == 1, "alpha is one number for the branch"
    assert block.alpha.requires_grad, "alpha is not learned"


RESIDUAL_CHECKS = [
    check_one_number,
    check_starts_as_the_identity,
    check_learns_from_the_start,
    check_value_and_gradient,
    *of_module(lambda kind: kind(body(), 0.5).double(), tokens((3, 5))),
]


test_residual, test_residual_known_wrong = suite(ScaledResidual, RESIDUAL_CHECKS)


# Fixup -----------------------------------------------------------------------


def check_fixup(rule):
    for layers, branches in ((2, 9), (3, 16), (4, 64)):
        ours, before = body(layers=layers), body(layers=layers)
        rule(ours, branches)
        linear = [m for m in ours if isinstance(m, nn.Linear)]
        old = [m for m in before if isinstance(m, nn.Linear)]
        factor = {2: 9**-0.5, 3: 16**-0.25, 4: 64 ** (-1 / 6)}[layers]
        for layer, copy in zip(linear[:-1], old[:-1], strict=True):
            assert_close(layer.weight, factor * copy.weight.detach(), 1e-12)
        assert not linear[-1].weight.any(), "the last layer is not zero"


def check_fixup_leaves_biases(rule):
    ours, before = body(), body()
    rule(ours, 9)
    for layer, copy in ((ours[0], before[0]), (ours[2], before[2])):
        assert torch.equal(layer.bias, copy.bias), "a bias has changed"


FIXUP_CHECKS = [check_fixup, check_fixup_leaves_biases]


test_fixup, test_fixup_known_wrong = suite(fixup, FIXUP_CHECKS)


# What the page says ----------------------------------------------------------


def stream(kind, depth):
    x = tokens((256, 64), seed=3) / 1.0
    x = x / x.square().mean(-1, keepdim=True).sqrt()
    with torch.no_grad():
        return float(stack(kind, depth)(x).square().mean())


def test_plain_grows_exponentially_and_pre_norm_linearly():
    assert 1.6**32 < stream("plain", 32) < 2.4**32
    assert 0.7 * 33 < stream("Pre-Norm", 32) < 1.3 * 33


@pytest.mark.parametrize("depth", (4, 16, 64))
def test_bounded_starts(depth):
    assert stream("SkipInit", depth) < 1.2 * 2.7183
    assert abs(stream("Fixup", depth) - 1) < 1e-12
    assert abs(stream("ReZero", depth) - 1) < 1e-12
    assert stream("DyT", depth) <= stream("Pre-Norm", depth)


def test_each_token_is_a_line_and_the_cloud_is_not():
    _, x, y = cloud()
    centred = x - x.mean(-1, keepdim=True)
    slopes = (centred * y).sum(-1) / (centred * centred).sum(-1)
    assert_close(slopes[:, None] * centred, y, 1e-9, 1e-12)
    assert float(slopes.max() / slopes.min()) > 20


def test_one_feature_is_an_inverse_square_root():
    others = tokens((9,), offset=1.0)
    for value in (0.01, 1.0, 30.0, 1e4):
        token = torch.cat((torch.tensor([value]).double(), others))
        y = value / token.square().mean().sqrt()
        rest = others.square().sum()
        assert abs(float(y - value * (10 / (value**2 + rest)).sqrt())) < 1e-9
        assert float(y) < 10**0.5
