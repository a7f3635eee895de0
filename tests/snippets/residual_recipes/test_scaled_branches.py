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
from tests.same_results import of_module
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
from tests.wrong import suite


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


LAYER_SCALE_CHECKS = [
    check_layer_scale,
    check_layer_scale_start,
    *of_module(lambda make: disturb(layer_scaled(make, 7)), tokens((2, 3, 7))),
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


DEPTH_CHECKS = [
    check_depth_scaled,
    check_default_exponent,
    *of_module(
        lambda make: disturb(make(Bend(7), nn.LayerNorm(7), 4.0)), tokens((2, 3, 7))
    ),
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


test_layer_scale, test_known_wrong_layer_scale = suite(LayerScale, LAYER_SCALE_CHECKS)
test_depth_scaled, test_known_wrong_depth_scaled = suite(DepthScaled, DEPTH_CHECKS)
test_adam_factors, test_known_wrong_adam_factors = suite(
    adam_factors, [check_adam_factors]
)
test_exits, test_known_wrong_exits = suite(scale_exits, EXIT_CHECKS)


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
