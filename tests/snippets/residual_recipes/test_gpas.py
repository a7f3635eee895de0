"""GPAS: values scaled, gradients whole, against hand-written gradients."""

import pytest
import torch
from torch import nn

from snippets.residual_recipes.gpas import GPAS, PreNormGPAS
from tests.same_results import of_module
from tests.snippets.residual_recipes.pieces import (
    SHAPES,
    Bend,
    close,
    disturb,
    layer_norm,
    tokens,
)
from tests.wrong import suite


def gated(make, gate):
    made = make().double()
    with torch.no_grad():
        made.gate.fill_(gate)
    return made


def silu(gate):
    return gate / (1 + torch.exp(torch.tensor(-gate, dtype=torch.float64)))


def check_values(make):
    for gate in (0.0, 0.7, 2.0, -1.5):
        for shape in SHAPES:
            x = tokens(shape, 1.3, 0.4)
            close(gated(make, gate)(x.clone()), (1 - silu(gate)) * x)


def check_gradient_is_whole(make):
    for gate in (0.0, 0.7, 2.0, -1.5):
        x = tokens((2, 3, 5)).requires_grad_()
        upstream = tokens((2, 3, 5), 0.7, 0.1, seed=3)
        (found,) = torch.autograd.grad(
            gated(make, gate)(x), x, upstream, materialize_grads=True
        )
        close(found, upstream)


def check_gradient_of_the_gate(make):
    """-Σ SiLU'(gate) x · upstream."""
    for gate in (0.0, 0.7, -1.5):
        made, x = gated(make, gate), tokens((2, 3, 5))
        upstream = tokens((2, 3, 5), 0.7, 0.1, seed=3)
        made(x).backward(upstream)
        s = torch.sigmoid(torch.tensor(gate, dtype=torch.float64))
        wanted = -(s * (1 + gate * (1 - s))) * (x * upstream).sum()
        assert made.gate.grad is not None
        close(made.gate.grad, wanted)


def check_start(make):
    made = make()
    assert [tuple(p.shape) for p in made.parameters()] == [()]
    x = tokens((3, 4))
    assert torch.equal(made.double()(x), x)


CHECKS = [
    check_values,
    check_gradient_is_whole,
    check_gradient_of_the_gate,
    check_start,
    *of_module(lambda make: gated(make, 0.7), tokens((2, 3, 5))),
]


def check_block(make):
    for shape in SHAPES:
        d = shape[-1]
        made = disturb(make(Bend(d), nn.LayerNorm(d), GPAS()))
        x = tokens(shape, 1.4, 0.2).requires_grad_()
        total = x + made.branch(layer_norm(x, made.norm))
        scale = 1 - silu(float(made.gpas.gate.detach()))
        close(made(x), scale * total)
        upstream = tokens(shape, 0.7, 0.1, seed=3)
        (found,) = torch.autograd.grad(made(x), x, upstream)
        (wanted,) = torch.autograd.grad(total, x, upstream)
        close(found, wanted, 1e-8)


test_right, test_known_wrong = suite(GPAS, CHECKS)


test_right_block, test_known_wrong_block = suite(PreNormGPAS, [check_block])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(dtype):
    made = gated(GPAS, 0.7).to(dtype)
    x = tokens((2, 5, 31), dtype=dtype)
    assert made(x).dtype == dtype
    scale = 1 - silu(float(made.gate.detach()))
    close(made(x), scale * x.double(), 0.01, 8 * torch.finfo(dtype).eps)
