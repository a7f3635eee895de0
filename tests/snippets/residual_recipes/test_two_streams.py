"""ResiDual and SiameseNorm: three sublayers by hand, in float64."""

import pytest
import torch
from torch import nn

from snippets.residual_recipes.residual_dual import ResiDual, ResiDualEnd
from snippets.residual_recipes.siamese import Siamese, SiameseEnd
from tests.snippets.residual_recipes.pieces import (
    SHAPES,
    Bend,
    close,
    disturb,
    layer_norm,
    same_gradients,
    tokens,
)
from tests.wrong import suite

RESIDUAL, SIAMESE = (ResiDual, ResiDualEnd), (Siamese, SiameseEnd)


def residual_stack(pair, d, dtype=torch.float64):
    block, end = pair
    blocks = [disturb(block(Bend(d, i), d), i, dtype) for i in range(3)]
    return blocks, disturb(end(d), 9, dtype)


def residual_by_hand(blocks, end, x):
    updates, post = [], x
    for block in blocks:
        updates.append(block.branch(post))
        post = layer_norm(post + updates[-1], block.norm)
    return post + layer_norm(x + sum(updates), end.norm)


def siamese_stack(pair, d, dtype=torch.float64):
    block, end = pair
    blocks = [disturb(block(Bend(d, i), d, i // 2 + 1), i, dtype) for i in range(3)]
    return blocks, disturb(end(d), 9, dtype)


def siamese_by_hand(blocks, end, x):
    one, two = x, x
    for i, block in enumerate(blocks):
        one = layer_norm(one, block.post)
        read = layer_norm(one + layer_norm(two, block.pre), block.input)
        update = block.branch(read)
        one = one + update / (2 * (i // 2 + 1)) ** 0.5
        two = two + update
    total = layer_norm(one, end.post) + layer_norm(two, end.pre)
    return layer_norm(total, end.norm)


def run(blocks, end, x):
    streams = (x, x)
    for block in blocks:
        streams = block(streams)
    return end(streams)


def _check(stack, by_hand, shapes):
    def check(pair):
        for shape in shapes:
            blocks, end = stack(pair, shape[-1])
            x = tokens(shape, 1.4, 0.3).requires_grad_()
            before = x.detach().clone()
            ours, wanted = run(blocks, end, x), by_hand(blocks, end, x)
            close(ours, wanted, 1e-9)
            matrices = [block.branch.matrix for block in blocks]
            same_gradients(ours, wanted, [x, *matrices], 1e-7)
            assert torch.equal(x.detach(), before)

    return check


check_residual = _check(residual_stack, residual_by_hand, SHAPES)
check_siamese = _check(siamese_stack, siamese_by_hand, SHAPES)


test_residual, test_known_wrong_residual = suite(
    ResiDual, [check_residual], lambda block: (block, ResiDualEnd)
)
test_residual_end, test_known_wrong_residual_end = suite(
    ResiDualEnd, [check_residual], lambda end: (ResiDual, end)
)
test_siamese, test_known_wrong_siamese = suite(
    Siamese, [check_siamese], lambda block: (block, SiameseEnd)
)
test_siamese_end, test_known_wrong_siamese_end = suite(
    SiameseEnd, [check_siamese], lambda end: (Siamese, end)
)


@pytest.mark.parametrize(
    ("stack", "pair"), [(residual_stack, RESIDUAL), (siamese_stack, SIAMESE)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(stack, pair, dtype):
    narrow, wide = stack(pair, 31, dtype), stack(pair, 31)
    for one, other in zip([*narrow[0], narrow[1]], [*wide[0], wide[1]], strict=True):
        other.load_state_dict({k: v.double() for k, v in one.state_dict().items()})
    x = tokens((2, 5, 31), dtype=dtype)
    y = run(*narrow, x)
    assert y.dtype == dtype
    close(y, run(*wide, x.double()), 0.1, 64 * torch.finfo(dtype).eps)


def test_parameters():
    names = {name for name, _ in Siamese(Bend(5), 5, 1).named_parameters()}
    norms = {f"{n}.{p}" for n in ("post", "pre", "input") for p in ("weight", "bias")}
    assert names == {"branch.matrix"} | norms
    block = ResiDual(Bend(5), 5)
    assert {n for n, _ in block.named_parameters()} == {
        "branch.matrix",
        "norm.weight",
        "norm.bias",
    }


def test_gradient_reaches_the_first_branch_past_all_norms():
    """ResiDual with Post-Norm gains of zero: only the dual stream carries."""
    blocks, end = residual_stack(RESIDUAL, 7)
    with torch.no_grad():
        for block in blocks:
            nn.init.zeros_(block.norm.weight)
    x = tokens((3, 7))
    run(blocks, end, x).pow(3).sum().backward()
    assert float(blocks[0].branch.matrix.grad.norm()) > 1e-3
