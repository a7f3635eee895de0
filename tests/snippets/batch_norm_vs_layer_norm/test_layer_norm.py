"""LayerNorm against pairs in float64 and torch, and its wrong relatives."""

import pytest
import torch
from torch import nn

from snippets.batch_norm_vs_layer_norm.norms import LayerNorm
from tests.same_results import of_module
from tests.snippets.batch_norm_vs_layer_norm.float64 import (
    affine,
    assert_close,
    layer_norm,
    layer_norm_gradients,
    tokens,
)
from tests.wrong import suite

SHAPES = ((1,), (7,), (3, 1), (2, 31), (1, 7, 5), (2, 3, 7), (2, 1, 3, 5))


def check_values(build):
    for shape in SHAPES:
        for offset, scale, eps in ((0, 1, 1e-5), (1e4, 1, 1e-3), (0, 1e-3, 1e-5)):
            norm = affine(build(shape[-1], eps=eps).double())
            x = tokens(shape, offset=offset, scale=scale)
            wanted = layer_norm(x, norm.gain, norm.bias, eps)
            assert_close(norm(x), wanted, 1e-9, 1e-9)


def check_gradients(build):
    for shape in ((3, 1), (2, 7), (2, 3, 5)):
        norm = affine(build(shape[-1], eps=1e-2).double())
        x = tokens(shape).requires_grad_()
        grad_y = tokens(shape, seed=1)
        inputs = (x, norm.gain, norm.bias)
        actual = torch.autograd.grad(norm(x), inputs, grad_y)
        wanted = layer_norm_gradients(grad_y, x, norm.gain, 1e-2)
        for name, ours, theirs in zip("xgb", actual, wanted, strict=True):
            assert_close(ours, theirs, 1e-9, 1e-9, f"gradient of {name}")


def check_same_in_both_modes(build):
    norm = affine(build(5).double())
    x = tokens((2, 3, 5))
    y = norm(x)
    assert torch.equal(norm.eval()(x), y), "the mode changes the output"
    assert set(norm.state_dict()) == {"gain", "bias"}, "it has other state"


def check_large_offset(build):
    norm = affine(build(64))
    x = tokens((5, 64), offset=3000.0, dtype=torch.float32)
    wanted = layer_norm(x, norm.gain, norm.bias, 1e-5)
    assert_close(norm(x), wanted, 1e-2, 1e-2)


def check_every_dtype(build):
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        norm = affine(build(33, eps=1e-4))
        if dtype == torch.float64:
            norm = norm.double()
        x = tokens((4, 33), offset=2.0, dtype=dtype)
        before = x.clone()
        y = norm(x)
        assert y.dtype == dtype, f"{y.dtype} from {dtype}"
        assert torch.equal(x, before), "the input was modified"
        wanted = layer_norm(x, norm.gain, norm.bias, 1e-4)
        unit = torch.finfo(torch.promote_types(dtype, torch.float32)).eps
        half = 0.51 * torch.finfo(dtype).eps
        assert_close(y, wanted, half + 20 * unit, 100 * unit)


CHECKS = [
    check_values,
    check_gradients,
    check_same_in_both_modes,
    check_large_offset,
    check_every_dtype,
    *of_module(lambda build: affine(build(5).double()), tokens((2, 3, 5))),
]


test_right, test_known_wrong = suite(LayerNorm, CHECKS)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_torch(shape, dtype):
    """nn.LayerNorm with copied weights: outputs and gradients."""
    ours = affine(LayerNorm(shape[-1], eps=1e-3)).to(dtype)
    theirs = nn.LayerNorm(shape[-1], eps=1e-3).to(dtype)
    with torch.no_grad():
        theirs.weight.copy_(ours.gain)
        theirs.bias.copy_(ours.bias)
    x = tokens(shape, dtype=dtype).requires_grad_()
    grad_y = tokens(shape, seed=1, dtype=dtype)
    mine, yours = ours(x), theirs(x)
    tolerance = 1e-10 if dtype == torch.float64 else 2e-4
    assert_close(mine, yours, tolerance, tolerance)
    a = torch.autograd.grad(mine, (x, ours.gain, ours.bias), grad_y)
    b = torch.autograd.grad(yours, (x, theirs.weight, theirs.bias), grad_y)
    for left, right in zip(a, b, strict=True):
        size = float(right.abs().max())
        assert_close(left, right, tolerance, tolerance * (1 + size), "gradient")
