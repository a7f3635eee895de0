"""LayerScale, CompleteP's factor and the depth-scaled sandwich, by hand."""

import pytest
import torch
from torch import nn

from snippets.residual_recipes.complete_p import (
    AdamFactors,
    DepthScaled,
    adam_factors,
)
from snippets.residual_recipes.depth_scaled import scale_exits
from snippets.residual_recipes.layer_scale import LayerScale, initial_scale
from snippets.sandwich_norm.blocks import SandwichNorm
from tests.snippets.residual_recipes.pieces import (
    SHAPES,
    Bend,
    close,
    disturb,
    layer_norm,
    rms,
    same_gradients,
    tokens,
)


def layer_scaled(make, d, start=0.1):
    return make(Bend(d), nn.LayerNorm(d), d, start)


def check_layer_scale(make):
    for shape in SHAPES:
        for scale, offset in ((1, 0), (0.1, 2), (3, -1)):
            made = disturb(layer_scaled(make, shape[-1]))
            x = tokens(shape, scale, offset).requires_grad_()
            update = made.branch(layer_norm(x, made.norm))
            wanted = x + made.scale * update
            close(made(x.clone()), wanted)
            same_gradients(made(x), wanted, [x, made.scale, made.norm.weight])


def check_layer_scale_start(make):
    for start in (0.1, 1e-5):
        made = layer_scaled(make, 5, start)
        assert made.scale.shape == (5,), made.scale.shape
        assert made.scale.requires_grad
        close(made.scale, torch.full((5,), start), 1e-6)


LAYER_SCALE_CHECKS = [check_layer_scale, check_layer_scale_start]


def _scaled(change):
    class Changed(LayerScale):
        def forward(self, x):
            return change(self, x)

    return Changed


class scale_starts_at_zero(LayerScale):
    def __init__(self, branch, norm, d, start):
        super().__init__(branch, norm, d, 0.0)


class scale_starts_at_one(LayerScale):
    def __init__(self, branch, norm, d, start):
        super().__init__(branch, norm, d, 1.0)


class one_scale_for_all_features(LayerScale):
    def __init__(self, branch, norm, d, start):
        super().__init__(branch, norm, 1, start)


scale_behind_the_sum = _scaled(lambda s, x: s.scale * (x + s.branch(s.norm(x))))
scale_on_the_stream = _scaled(lambda s, x: s.scale * x + s.branch(s.norm(x)))
scale_in_front_of_the_branch = _scaled(lambda s, x: x + s.branch(s.scale * s.norm(x)))
convex_mixture = _scaled(lambda s, x: (1 - s.scale) * x + s.scale * s.branch(s.norm(x)))
pre_norm_forgotten = _scaled(lambda s, x: x + s.scale * s.branch(x))
scale_detached = _scaled(lambda s, x: x + s.scale.detach() * s.branch(s.norm(x)))

WRONG_LAYER_SCALES = [
    scale_starts_at_zero,
    scale_starts_at_one,
    one_scale_for_all_features,
    scale_behind_the_sum,
    scale_on_the_stream,
    scale_in_front_of_the_branch,
    convex_mixture,
    pre_norm_forgotten,
    scale_detached,
]


@pytest.mark.parametrize(
    ("layers", "start"),
    [(1, 0.1), (18, 0.1), (24, 1e-5), (36, 1e-6), (48, 1e-6)],
)
def test_layer_scale_starts_where_the_paper_starts_it(layers, start):
    assert initial_scale(layers) == start


def check_depth_scaled(make):
    for m, exponent in ((4.0, 1.0), (4.0, 0.5), (1.0, 1.0), (0.5, 0.7)):
        for shape in SHAPES:
            d = shape[-1]
            made = disturb(make(Bend(d), nn.LayerNorm(d), m, exponent))
            x = tokens(shape, 1.4, 0.2).requires_grad_()
            update = made.branch(layer_norm(x, made.norm))
            wanted = x + update / m**exponent
            close(made(x), wanted)
            same_gradients(made(x), wanted, [x, made.norm.weight])


def check_default_exponent(make):
    x = tokens((3, 7))
    close(make(Bend(7), nn.Identity(), 8.0)(x), x + Bend(7)(x) / 8)


DEPTH_CHECKS = [check_depth_scaled, check_default_exponent]


def _depth(change):
    class Changed(DepthScaled):
        def forward(self, x):
            return change(self, x)

    return Changed


class root_by_default(DepthScaled):
    def __init__(self, branch, norm, m, exponent=0.5):
        super().__init__(branch, norm, m, exponent)


class factor_turned_over(DepthScaled):
    def __init__(self, branch, norm, m, exponent=1.0):
        super().__init__(branch, norm, 1 / m, exponent)


factor_on_the_norm = _depth(lambda s, x: x + s.branch(s.factor * s.norm(x)))
factor_on_the_sum = _depth(lambda s, x: s.factor * (x + s.branch(s.norm(x))))
factor_on_the_stream = _depth(lambda s, x: s.factor * x + s.branch(s.norm(x)))
factor_missing = _depth(lambda s, x: x + s.branch(s.norm(x)))

WRONG_DEPTHS = [
    root_by_default,
    factor_turned_over,
    factor_on_the_norm,
    factor_on_the_sum,
    factor_on_the_stream,
    factor_missing,
]


def check_adam_factors(function):
    """The learning rates, decay and ε of nanoGPT-mup's branch `completep`."""
    for depth in (1.0, 4.0, 16.0):
        for width in (1.0, 2.0):
            for exponent in (0.5, 0.75, 1.0):
                depth_rate = depth ** (exponent - 1)
                width_rate = 1 / width
                wanted = AdamFactors(
                    width_rate * depth_rate,
                    depth_rate,
                    1 / width_rate,
                    (1 / width) * depth ** (-1 * exponent),
                )
                found = function(depth, width, exponent)
                assert found == pytest.approx(wanted), (depth, width, exponent)


def _factors(**changes):
    def function(depth, width=1.0, exponent=1.0):
        right = adam_factors(depth, width, exponent)
        return right._replace(
            **{k: change(depth, width, exponent) for k, change in changes.items()}
        )

    return function


rate_falls_with_depth_at_exponent_one = _factors(
    matrices=lambda d, w, a: d**-a / w, vectors=lambda d, w, a: d**-a
)
rate_falls_with_the_root_of_width = _factors(
    matrices=lambda d, w, a: d ** (a - 1) / w**0.5
)
epsilon_not_scaled = _factors(epsilon=lambda d, w, a: 1.0)
vectors_forgotten = _factors(vectors=lambda d, w, a: 1.0)
decay_not_scaled = _factors(decay=lambda d, w, a: 1.0)

WRONG_FACTORS = [
    rate_falls_with_depth_at_exponent_one,
    rate_falls_with_the_root_of_width,
    epsilon_not_scaled,
    vectors_forgotten,
    decay_not_scaled,
]


def sandwiches(layers, d=6):
    return [disturb(SandwichNorm(Bend(d, i), d), i) for i in range(2 * layers)]


def check_exits(function):
    for layers in (1, 4, 9):
        blocks = sandwiches(layers)
        entrances = [block.pre.gain.detach().clone() for block in blocks]
        function(blocks)
        for i, (block, entrance) in enumerate(zip(blocks, entrances, strict=True)):
            wanted = (0.432 if i % 2 else 0.283) / layers**0.5
            assert torch.equal(block.pre.gain.detach(), entrance)
            close(block.post.gain, torch.full((6,), wanted), 1e-6)
            assert isinstance(block.post.gain, nn.Parameter)
            assert block.post.gain.requires_grad
            x = tokens((3, 6), 1.2, 0.1)
            update = rms(block.branch(rms(x) * entrance))
            close(block(x), x + wanted * update, 1e-6, 1e-6)


def check_other_constants(function):
    blocks = sandwiches(4)
    function(blocks, 1.0, 2.0)
    close(blocks[0].post.gain, torch.full((6,), 0.5), 1e-6)
    close(blocks[1].post.gain, torch.full((6,), 1.0), 1e-6)


EXIT_CHECKS = [check_exits, check_other_constants]


def _exits(gain_of, name="post"):
    @torch.no_grad()
    def function(blocks, attention=0.283, network=0.432):
        layers = len(blocks) // 2
        for i, block in enumerate(blocks):
            gain = gain_of(i, layers, (attention, network))
            getattr(block, name).gain.fill_(gain)

    return function


root_of_sublayers = _exits(lambda i, n, c: c[i % 2] / (2 * n) ** 0.5)
own_index_for_the_depth = _exits(lambda i, n, c: c[i % 2] / (i // 2 + 1) ** 0.5)
depth_without_the_root = _exits(lambda i, n, c: c[i % 2] / n)
constants_swapped = _exits(lambda i, n, c: c[1 - i % 2] / n**0.5)
one_constant_for_both = _exits(lambda i, n, c: c[0] / n**0.5)
constants_forgotten = _exits(lambda i, n, c: n**-0.5)
entrance_for_exit = _exits(lambda i, n, c: c[i % 2] / n**0.5, "pre")


@torch.no_grad()
def gains_multiplied(blocks, attention=0.283, network=0.432):
    for i, block in enumerate(blocks):
        constant = (attention, network)[i % 2]
        block.post.gain.mul_(constant / (len(blocks) // 2) ** 0.5)


@torch.no_grad()
def gains_frozen(blocks, attention=0.283, network=0.432):
    scale_exits(blocks, attention, network)
    for block in blocks:
        block.post.gain.requires_grad_(False)


WRONG_EXITS = [
    root_of_sublayers,
    own_index_for_the_depth,
    depth_without_the_root,
    constants_swapped,
    one_constant_for_both,
    constants_forgotten,
    entrance_for_exit,
    gains_multiplied,
    gains_frozen,
]
for _name, _variant in list(globals().items()):
    if any(
        _variant is each
        for each in WRONG_LAYER_SCALES + WRONG_DEPTHS + WRONG_FACTORS + WRONG_EXITS
    ):
        _variant.__name__ = _name


@pytest.mark.parametrize(
    ("checks", "right"),
    [
        (LAYER_SCALE_CHECKS, LayerScale),
        (DEPTH_CHECKS, DepthScaled),
        ([check_adam_factors], adam_factors),
        (EXIT_CHECKS, scale_exits),
    ],
)
def test_right(checks, right):
    for check in checks:
        check(right)


@pytest.mark.parametrize("variant", WRONG_LAYER_SCALES, ids=lambda v: v.__name__)
def test_known_wrong_layer_scale(variant, known_wrong):
    known_wrong.rejected_by(LAYER_SCALE_CHECKS, variant)


@pytest.mark.parametrize("variant", WRONG_DEPTHS, ids=lambda v: v.__name__)
def test_known_wrong_depth_scaled(variant, known_wrong):
    known_wrong.rejected_by(DEPTH_CHECKS, variant)


@pytest.mark.parametrize("variant", WRONG_FACTORS, ids=lambda v: v.__name__)
def test_known_wrong_adam_factors(variant, known_wrong):
    known_wrong.rejected_by([check_adam_factors], variant)


@pytest.mark.parametrize("variant", WRONG_EXITS, ids=lambda v: v.__name__)
def test_known_wrong_exits(variant, known_wrong):
    known_wrong.rejected_by(EXIT_CHECKS, variant)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_blocks_must_pair_up(count):
    with pytest.raises(ValueError, match=f"{count} blocks"):
        scale_exits(sandwiches(3)[:count])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["scale", "depth"])
def test_dtypes(kind, dtype):
    def made():
        norm = nn.LayerNorm(31)
        if kind == "scale":
            return LayerScale(Bend(31), norm, 31, 0.1)
        return DepthScaled(Bend(31), norm, 4.0)

    narrow, wide = disturb(made(), dtype=dtype), made().double()
    wide.load_state_dict({k: v.double() for k, v in narrow.state_dict().items()})
    x = tokens((2, 5, 31), dtype=dtype)
    assert narrow(x).dtype == dtype
    close(narrow(x), wide(x.double()), 0.05, 64 * torch.finfo(dtype).eps)
