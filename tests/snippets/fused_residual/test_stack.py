"""A Pre-Norm stack rewritten for the fused operator, and the bytes it moves."""

import pytest
import torch
from torch import nn

from snippets.fused_residual.module import Stack
from snippets.fused_residual.operator import add_rms_norm
from snippets.fused_residual.stack import passed_along, plain
from snippets.fused_residual.traffic import Traffic
from snippets.rms_norm import reference
from snippets.speed.byte_count import (
    ADD_THEN_NORM,
    FUSED_ADD_NORM,
    FUSED_NORM,
    bytes_per_element,
)
from snippets.triton_rms_norm.operator import rms_norm
from tests.kernel_checks import draw, gains, gradients, leaves
from tests.wrong import rejects


def in_float64(x, branches, scales):
    for branch, gain in zip(branches, scales[:-1], strict=True):
        x = x + branch(reference.rms_norm(x, gain))
    return reference.rms_norm(x, scales[-1])


def branch_of(matrix):
    return lambda y: torch.tanh(y @ matrix)


def check_depth(stack, depth):
    matrices = [draw(12, 12, seed=20 + i, scale=0.3) for i in range(depth)]
    inputs = draw(6, 12, seed=1), *(gains(12) + i / 8 for i in range(depth + 1))
    results = []
    for function, dtype in ((stack, torch.float32), (in_float64, torch.float64)):
        own = leaves(*inputs, dtype=dtype)
        branches = [branch_of(matrix.to(dtype)) for matrix in matrices]
        y = function(own[0], branches, own[1:])
        slope = draw(6, 12, seed=3).to(dtype)
        results.append([y.detach(), *gradients(y, own, slope)])
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one.double(), other, rtol=1e-4, atol=1e-5)


def check_one_layer(stack):
    check_depth(stack, 1)


def check_five_layers(stack):
    check_depth(stack, 5)


def check_no_layer(stack):
    check_depth(stack, 0)


CHECKS = [check_one_layer, check_five_layers, check_no_layer]


@pytest.mark.parametrize("stack", [plain, passed_along])
@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check, stack):
    check(stack)


test_rejects = rejects(passed_along, CHECKS)


def test_the_modules_are_the_plain_stack():
    torch.manual_seed(0)
    model = Stack(12, blocks=3)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    branches, scales = [], []
    for block in model.blocks:
        branches += [block.attention, block.ffn]
        scales += [block.attention_norm.gain, block.ffn_norm.gain]
    x = draw(6, 12)
    wanted = plain(x, branches, [*scales, model.norm.gain])
    assert torch.equal(model(x), wanted)
    assert not torch.equal(model.norm(x)[1], wanted)


@pytest.mark.parametrize("name", ["bfloat16", "float32"])
def test_bytes_are_those_of_the_count(name):
    dtype = getattr(torch, name)
    x, branch = draw(8, 16, dtype=dtype), draw(8, 16, seed=1, dtype=dtype)
    with Traffic(x.numel()) as two:
        rms_norm(x + branch, gains(16, dtype))
    with Traffic(x.numel()) as one:
        add_rms_norm(x, branch, gains(16, dtype))
    assert two.bytes == bytes_per_element(ADD_THEN_NORM, name) * x.numel()
    assert one.bytes == bytes_per_element(FUSED_ADD_NORM, name) * x.numel()


def test_views_move_nothing():
    x = draw(8, 16)
    with Traffic(x.numel()) as traffic:
        x.view(16, 8).transpose(0, 1).detach()
        x[0].sum()
    assert traffic.bytes == 0
    with Traffic(x.numel()) as traffic:
        rms_norm(x, gains(16))
    assert traffic.bytes == bytes_per_element(FUSED_NORM, "float32") * x.numel()
