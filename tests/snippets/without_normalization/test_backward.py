"""dynamic_tanh_backward against 1 / cosh² in float64, and autograd."""

import pytest
import torch

from snippets.without_normalization.backward import dynamic_tanh_backward
from snippets.without_normalization.reference import dynamic_tanh
from tests.same_results import on_views
from tests.snippets.without_normalization.float64 import (
    SHAPES,
    assert_close,
    parameters,
    reference_gradients,
    tokens,
)
from tests.wrong import suite

NAMES = ("grad_x", "grad_alpha", "grad_gain", "grad_bias")
RTOL = {torch.float64: 1e-11, torch.float32: 1e-5, torch.bfloat16: 4.1e-3}


def _expect(backward, grad_y, x, alpha, gain, rtol, atol=0.0):
    expected = reference_gradients(grad_y, x, alpha, gain)
    like = (x, alpha, gain, gain)
    for name, a, b, source in zip(
        NAMES, backward(grad_y, x, alpha, gain), expected, like, strict=True
    ):
        assert a.dtype == source.dtype, f"{name}: {a.dtype}"
        assert_close(a, b, rtol, atol + rtol * 0.01 * float(b.abs().max()), name)


def check_float64(backward):
    for shape in SHAPES:
        for offset, scale in ((0, 1), (20, 1), (0, 1e-5)):
            alpha, gain, _ = parameters(shape[-1])
            x = tokens(shape, offset=offset, scale=scale)
            _expect(backward, tokens(shape, seed=1), x, alpha, gain, 1e-11, 1e-13)


def check_every_dtype(backward):
    for dtype, rtol in RTOL.items():
        alpha, gain, _ = parameters(33, dtype)
        x = tokens((2, 5, 33), scale=0.5, dtype=dtype)
        grad_y = tokens((2, 5, 33), seed=1, dtype=dtype)
        _expect(backward, grad_y, x, alpha, gain, rtol)


def check_many_tokens(backward):
    alpha, gain, _ = parameters(7, torch.bfloat16)
    gain = gain.abs()
    x = tokens((512, 7), scale=0.3, dtype=torch.bfloat16)
    grad_y = (x.sign() * tokens((512, 7), seed=1).abs()).to(torch.bfloat16)
    expected = reference_gradients(grad_y, x, alpha, gain)
    _, grad_alpha, grad_gain, _ = backward(grad_y, x, alpha, gain)
    for a, b in ((grad_alpha, expected[1]), (grad_gain, expected[2])):
        assert_close(a, b, 4.1e-3)  # one rounding, however many tokens


def check_inputs_unchanged(backward):
    alpha, gain, _ = parameters(5)
    inputs = [tokens((3, 5), seed=1), tokens((3, 5)), alpha, gain]
    before = [each.clone() for each in inputs]
    backward(*inputs)
    for each, copy in zip(inputs, before, strict=True):
        assert torch.equal(each, copy), "an input was modified"


CHECKS = [
    check_float64,
    check_every_dtype,
    check_many_tokens,
    check_inputs_unchanged,
    on_views(tokens((2, 3, 7), seed=1), tokens((2, 3, 7)), *parameters(7)[:2]),
]


test_right, test_known_wrong = suite(dynamic_tanh_backward, CHECKS)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_autograd(shape):
    inputs = [tokens(shape), *parameters(shape[-1])]
    inputs = [each.requires_grad_() for each in inputs]
    grad_y = tokens(shape, seed=1)
    exact = torch.autograd.grad(dynamic_tanh(*inputs), inputs, grad_y)
    ours = dynamic_tanh_backward(grad_y, *(e.detach() for e in inputs[:3]))
    for a, b in zip(ours, exact, strict=True):
        assert_close(a, b, 1e-11, 1e-13)
