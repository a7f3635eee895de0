"""ScaledNorm: exactly norm(x) / sqrt(layer)."""

import pytest
import torch
from torch import nn

from snippets.curse_of_depth.depth_scaling import ScaledNorm
from snippets.rms_norm.reference import RMSNorm
from tests.same_results import of_module
from tests.wrong import suite

SHAPES = ((7,), (3, 1), (2, 5, 8), (1, 2, 3, 31))


def norms(d):
    found = [RMSNorm(d, 1e-3).double(), nn.LayerNorm(d, 1e-3).double()]
    for norm in found:
        for parameter in norm.parameters():
            nn.init.uniform_(
                parameter, 0.4, 1.9, generator=torch.Generator().manual_seed(d)
            )
    return found


def draw(shape, scale=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(shape, generator=generator).double()


def expected(norm, x, layer):
    """The affine part by hand, divided at the very end."""
    gain, *bias = norm.parameters()
    centred = x - x.mean(-1, keepdim=True) if bias else x
    length = (centred.pow(2).sum(-1, keepdim=True) / x.shape[-1] + 1e-3) ** 0.5
    return (centred / length * gain + (bias[0] if bias else 0)) / layer**0.5


def near(actual, wanted):
    gap = (actual - wanted).detach().abs().max()
    assert bool(gap <= 1e-9 * (1e-9 + wanted.detach().abs().max())), "values differ"


def check_values(build):
    for shape in SHAPES:
        for norm in norms(shape[-1]):
            for layer in (1, 2, 3, 7, 64):
                for scale in (1e-3, 1.0, 1e3):
                    x = draw(shape, scale)
                    near(build(norm, layer)(x.clone()), expected(norm, x, layer))


def check_gradients(build):
    for norm in norms(8):
        for layer in (1, 5, 64):
            x, grad_y = draw((3, 8)).requires_grad_(), draw((3, 8), seed=1)
            inputs = (x, *norm.parameters())
            wanted = torch.autograd.grad(expected(norm, x, layer), inputs, grad_y)
            actual = torch.autograd.grad(build(norm, layer)(x), inputs, grad_y)
            for one, two in zip(actual, wanted, strict=True):
                near(one, two)


def check_input_unchanged(build):
    x = draw((3, 8))
    before = x.clone()
    build(norms(8)[0], 5)(x)
    assert torch.equal(x, before), "the input was overwritten"


def check_dtype(build):
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        module = build(nn.LayerNorm(8, dtype=dtype), 5)
        assert module(draw((3, 8)).to(dtype)).dtype == dtype


CHECKS = [
    check_values,
    check_gradients,
    check_input_unchanged,
    check_dtype,
    *of_module(lambda build: build(norms(8)[1], 3), draw((2, 3, 8))),
]


test_right, test_known_wrong = suite(ScaledNorm, CHECKS)


@pytest.mark.parametrize("layer", [0, -1])
def test_layers_are_counted_from_one(layer):
    with pytest.raises(ValueError, match="counted from 1"):
        ScaledNorm(nn.Identity(), layer)


def test_is_a_gain():
    """A norm whose gain holds the factor is the same function."""
    norm, x = norms(8)[0], draw((3, 8))
    wanted = ScaledNorm(norm, 9)(x)
    with torch.no_grad():
        norm.gain.div_(3)
    near(norm(x), wanted)
