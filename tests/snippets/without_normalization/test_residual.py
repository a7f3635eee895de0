"""ScaledResidual, fixup and the stacks: what the page says of deep networks."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from snippets.without_normalization.cloud import cloud
from snippets.without_normalization.residual import ScaledResidual, fixup
from snippets.without_normalization.stack import stack
from tests.snippets.without_normalization.float64 import assert_close, tokens


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
]


class _Residual(ScaledResidual):
    pass


class alpha_starts_at_one(_Residual):
    def __init__(self, body):
        super().__init__(body, alpha=1.0)


class alpha_on_the_stream(_Residual):
    def forward(self, x):
        return self.alpha * x + self.body(x)


class alpha_on_the_sum(_Residual):
    def forward(self, x):
        return self.alpha * (x + self.body(x))


class stream_forgotten(_Residual):
    def forward(self, x):
        return self.alpha * self.body(x)


class interpolates(_Residual):
    def forward(self, x):
        return (1 - self.alpha) * x + self.alpha * self.body(x)


class alpha_inside_the_branch(_Residual):
    def forward(self, x):
        return x + self.body(self.alpha * x)


class alpha_not_learned(_Residual):
    def __init__(self, body):
        super().__init__(body)
        self.alpha.requires_grad_(False)


class alpha_per_feature(_Residual):
    def __init__(self, body):
        super().__init__(body)
        self.alpha = nn.Parameter(torch.zeros(5))


class alpha_squared(_Residual):
    def forward(self, x):
        return x + self.alpha**2 * self.body(x)


class branch_detached(_Residual):
    def forward(self, x):
        return x + self.alpha * self.body(x).detach()


class last_layer_zero_as_well(_Residual):
    def __init__(self, body):
        super().__init__(body)
        with torch.no_grad():
            body[-1].weight.zero_()
            body[-1].bias.zero_()


RESIDUAL_VARIANTS = [
    alpha_starts_at_one,
    alpha_on_the_stream,
    alpha_on_the_sum,
    stream_forgotten,
    interpolates,
    alpha_inside_the_branch,
    alpha_not_learned,
    alpha_per_feature,
    alpha_squared,
    branch_detached,
    last_layer_zero_as_well,
]


@pytest.mark.parametrize("check", RESIDUAL_CHECKS, ids=lambda f: f.__name__)
def test_residual(check):
    check(ScaledResidual)


@pytest.mark.parametrize("variant", RESIDUAL_VARIANTS, ids=lambda v: v.__name__)
def test_residual_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(RESIDUAL_CHECKS, variant)


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


def _linear(branch):
    return [layer for layer in branch if isinstance(layer, nn.Linear)]


@torch.no_grad()
def sign_of_the_exponent_lost(branch, branches):
    *others, last = _linear(branch)
    for layer in others:
        layer.weight.mul_(branches ** (1 / (2 * len(others))))
    last.weight.zero_()


@torch.no_grad()
def first_layer_zero(branch, branches):
    first, *others = _linear(branch)
    for layer in others:
        layer.weight.mul_(branches ** (-1 / (2 * len(others))))
    first.weight.zero_()


@torch.no_grad()
def all_layers_zero(branch, branches):
    for layer in _linear(branch):
        layer.weight.zero_()


@torch.no_grad()
def last_layer_scaled(branch, branches):
    layers = _linear(branch)
    for layer in layers:
        layer.weight.mul_(branches ** (-1 / (2 * len(layers) - 2)))


@torch.no_grad()
def last_layer_counted_out(branch, branches):
    *others, last = _linear(branch)
    m = len(others)
    for layer in others:
        layer.weight.mul_(branches ** (-1 / max(2 * m - 2, 1)))
    last.weight.zero_()


@torch.no_grad()
def one_over_root_depth(branch, branches):
    *others, last = _linear(branch)
    for layer in others:
        layer.weight.mul_(branches**-0.5)
    last.weight.zero_()


@torch.no_grad()
def one_over_depth(branch, branches):
    *others, last = _linear(branch)
    for layer in others:
        layer.weight.mul_(1 / branches)
    last.weight.zero_()


@torch.no_grad()
def only_the_first_scaled(branch, branches):
    *others, last = _linear(branch)
    others[0].weight.mul_(branches ** (-1 / (2 * len(others))))
    last.weight.zero_()


@torch.no_grad()
def not_scaled_at_all(branch, branches):
    _linear(branch)[-1].weight.zero_()


@torch.no_grad()
def biases_zeroed(branch, branches):
    fixup(branch, branches)
    for layer in _linear(branch):
        layer.bias.zero_()


FIXUP_VARIANTS = [
    sign_of_the_exponent_lost,
    first_layer_zero,
    all_layers_zero,
    last_layer_scaled,
    last_layer_counted_out,
    one_over_root_depth,
    one_over_depth,
    only_the_first_scaled,
    not_scaled_at_all,
    biases_zeroed,
]


@pytest.mark.parametrize("check", FIXUP_CHECKS, ids=lambda f: f.__name__)
def test_fixup(check):
    check(fixup)


@pytest.mark.parametrize("variant", FIXUP_VARIANTS, ids=lambda v: v.__name__)
def test_fixup_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(FIXUP_CHECKS, variant)


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
