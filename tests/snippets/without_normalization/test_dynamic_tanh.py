"""dynamic_tanh and DynamicTanh against exponentials in float64."""

import torch

from snippets.without_normalization.dynamic_erf import dynamic_erf
from snippets.without_normalization.reference import DynamicTanh, dynamic_tanh
from tests.same_results import on_views
from tests.snippets.without_normalization.float64 import (
    DTYPES,
    SHAPES,
    assert_close,
    parameters,
    reference,
    reference_gradients,
    tokens,
)
from tests.wrong import suite


def check_values_and_gradients(layer):
    for shape in SHAPES:
        for offset, scale in ((0, 1), (50, 1), (0, 1e-6), (0, 1e3)):
            x = tokens(shape, offset=offset, scale=scale).requires_grad_()
            inputs = [x, *(p.requires_grad_() for p in parameters(shape[-1]))]
            y = layer(*inputs)
            assert_close(y, reference(*inputs), 1e-12, 1e-14)
            grad_y = tokens(shape, seed=1)
            actual = torch.autograd.grad(y, inputs, grad_y)
            expected = reference_gradients(grad_y, *inputs[:3])
            for a, b in zip(actual, expected, strict=True):
                assert_close(a, b, 1e-9, 1e-12 * float(1 + b.abs().max()), "gradient")


def check_low_precision(layer):
    for dtype in DTYPES:
        x = tokens((64, 33), dtype=dtype)
        alpha, gain, bias = parameters(33)
        y = layer(x, alpha.float(), gain.float(), bias.float())
        assert y.dtype == dtype, y.dtype
        expected = reference(x, alpha.float(), gain.float(), bias.float())
        exact = dtype == torch.float64
        unit = 1e-12 if exact else max(0.502 * torch.finfo(dtype).eps, 2e-7)
        assert_close(y, expected, unit, 1e-13 if exact else 3e-7)


def check_input_unchanged(layer):
    x = tokens((3, 5))
    before = x.clone()
    layer(x, *parameters(5))
    assert torch.equal(x, before), "the input was modified"


CHECKS = [
    check_values_and_gradients,
    check_low_precision,
    check_input_unchanged,
    on_views(tokens((2, 3, 7)), *parameters(7)),
]


test_right, test_known_wrong = suite(dynamic_tanh, CHECKS)


def test_module():
    layer = DynamicTanh(7, alpha=0.3)
    assert {n: tuple(p.shape) for n, p in layer.named_parameters()} == {
        "alpha": (),
        "gain": (7,),
        "bias": (7,),
    }
    x = tokens((2, 7), dtype=torch.float32)
    assert torch.equal(layer(x), torch.tanh(layer.alpha * x))


def test_alpha_may_be_a_whole_number():
    assert DynamicTanh(3, alpha=1).alpha.dtype == torch.float32


def test_output_is_bounded_by_gain_and_bias():
    alpha, gain, bias = parameters(9)
    y = dynamic_tanh(tokens((50, 9), scale=1e6), alpha, gain, bias)
    assert bool(((y - bias).abs() <= gain.abs() + 1e-12).all())


def test_not_scale_invariant_but_odd():
    x, (alpha, gain, _) = tokens((4, 9)), parameters(9)
    zero = torch.zeros(9).double()
    y = dynamic_tanh(x, alpha, gain, zero)
    assert torch.equal(dynamic_tanh(-x, alpha, gain, zero), -y)
    assert float((dynamic_tanh(10 * x, alpha, gain, zero) - y).abs().max()) > 0.1


def test_derf_is_a_rescaled_normal_distribution():
    x, (alpha, gain, bias) = tokens((4, 9)), parameters(9)
    shift = torch.tensor(0.3).double()
    cdf = torch.special.ndtr((alpha * x + shift) * 2**0.5)
    expected = gain * (2 * cdf - 1) + bias
    assert_close(dynamic_erf(x, alpha, shift, gain, bias), expected, 1e-12, 1e-12)
