"""rms_norm and RMSNorm: values and gradients, every dtype, and against torch."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.rms_norm.reference import RMSNorm, rms_norm
from tests.same_results import on_views
from tests.snippets.rms_norm.float64 import (
    SHAPES,
    assert_close,
    gains,
    reference,
    reference_gradients,
    tokens,
)
from tests.wrong import suite

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
# Units of relative error: the arithmetic is float32 or wider, then one rounding.
RTOL = {
    torch.float64: 1e-14,
    torch.float32: 8e-7,
    torch.bfloat16: 2**-8 * 1.01,
    torch.float16: 2**-11 * 1.01,
}


def smallest(dtype):
    """Half the spacing of subnormal numbers: the rounding error near zero."""
    return torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps


def run(norm, x, gain, grad_y, eps):
    x = x.clone().requires_grad_()
    gain = gain.clone().requires_grad_()
    y = norm(x, gain, eps)
    gradients = torch.autograd.grad(
        y, (x, gain), grad_y.to(y.dtype), materialize_grads=True
    )
    return y.detach(), *gradients


def check_values_and_gradients(norm):
    for shape in SHAPES:
        for offset in (0.0, 100.0):
            x, gain = tokens(shape, offset=offset), gains(shape[-1])
            grad_y = tokens(shape, seed=1)
            y, grad_x, grad_gain = run(norm, x, gain, grad_y, 1e-5)
            expected = reference_gradients(grad_y, x, gain, 1e-5)
            assert_close(y, reference(x, gain, 1e-5), 1e-12)
            size = float(grad_y.abs().max() / x.square().mean(-1).sqrt().min())
            assert_close(grad_x, expected[0], 1e-10, 1e-11 * size, "grad_x")
            size = float(expected[1].abs().max())
            assert_close(grad_gain, expected[1], 1e-10, 1e-12 * size, "grad_gain")


def check_without_gain(norm):
    x = tokens((3, 5, 11), offset=2.0)
    assert_close(norm(x), reference(x), 1e-12)
    assert_close(norm(x, eps=1e-2), reference(x, eps=1e-2), 1e-12)


def check_small_and_zero_inputs(norm):
    for scale in (1e-2, 1e-4, 1e-8):
        for eps in (1e-5, 1e-6, 1e-12):
            x, gain = tokens((4, 9), scale=scale), gains(9)
            assert_close(norm(x, gain, eps), reference(x, gain, eps), 1e-12)
    # An eps that float16 cannot hold: only float32 arithmetic keeps it.
    x, gain = torch.full((2, 8), 1e-4).half(), gains(8, dtype=torch.float16)
    assert_close(norm(x, gain, 1e-8), reference(x, gain, 1e-8), RTOL[torch.float16])
    zero, gain = torch.zeros(2, 5, dtype=torch.float64), gains(5)
    y, grad_x, grad_gain = run(norm, zero, gain, torch.ones_like(zero), 1e-6)
    assert_close(y, torch.zeros_like(zero), 0.0)
    assert_close(grad_x, 1e3 * gain.expand(2, 5), 1e-12)
    assert_close(grad_gain, torch.zeros_like(gain), 0.0)


def check_large_inputs(norm):
    x, gain = tokens((4, 9), scale=1e30), gains(9)
    assert_close(norm(x, gain, 1e-6), reference(x, gain, 1e-6), 1e-12)
    x = torch.tensor([[300.0, -60000.0, 7.0], [2.0, 300.0, -300.0]]).half()
    y = norm(x, gains(3, dtype=torch.float16), 1e-6)
    assert_close(
        y,
        reference(x, gains(3, dtype=torch.float16)),
        RTOL[torch.float16],
        smallest(torch.float16),
    )


def check_every_dtype(norm):
    for dtype in DTYPES:
        for gain_dtype in {dtype, torch.float32}:
            for shape in ((3, 7), (2, 3, 257), (1, 4099)):
                x = tokens(shape, offset=0.3, dtype=dtype)
                gain = gains(shape[-1], dtype=gain_dtype)
                y = norm(x, gain, 1e-6)
                assert y.dtype == dtype, f"{dtype} in, {y.dtype} out"
                expected = reference(x, gain)
                assert_close(y, expected, RTOL[dtype], smallest(dtype), str(dtype))


def check_input_unchanged(norm):
    for dtype in DTYPES:
        x, gain = tokens((3, 8), dtype=dtype), gains(8, dtype=dtype)
        x_before, gain_before = x.clone(), gain.clone()
        norm(x, gain, 1e-6)
        assert torch.equal(x, x_before), "x was modified"
        assert torch.equal(gain, gain_before), "gain was modified"


def check_no_token_sees_another(norm):
    x, gain = tokens((2, 6, 5)), gains(5)
    louder = x.clone()
    louder[:, -1] *= 10
    before, after = norm(x, gain, 1e-6), norm(louder, gain, 1e-6)
    assert torch.equal(before[:, :-1], after[:, :-1]), "an earlier token changed"


CHECKS = [
    check_values_and_gradients,
    check_without_gain,
    check_small_and_zero_inputs,
    check_large_inputs,
    check_every_dtype,
    check_input_unchanged,
    check_no_token_sees_another,
    on_views(tokens((2, 3, 7)), gains(7), 1e-5),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right_module(check):
    def through_module(x, gain=None, eps=1e-6):
        module = RMSNorm(x.shape[-1], eps).to(x.dtype)
        gain = torch.ones(x.shape[-1], dtype=x.dtype) if gain is None else gain
        return torch.func.functional_call(module, {"gain": gain}, (x,))

    check(through_module)


test_right, test_rejects = suite(rms_norm, CHECKS)


def test_gradcheck():
    x = tokens((2, 3, 5), offset=1.0).requires_grad_()
    gain = gains(5).requires_grad_()
    assert torch.autograd.gradcheck(rms_norm, (x, gain, 1e-3))
    assert torch.autograd.gradgradcheck(rms_norm, (x, gain, 1e-3))


def test_module_learns_one_gain_a_feature():
    module = RMSNorm(6)
    assert [(n, tuple(p.shape)) for n, p in module.named_parameters()] == [
        ("gain", (6,))
    ]
    assert torch.equal(module.gain, torch.ones(6))
    module(tokens((3, 6), dtype=torch.float32)).sum().backward()
    assert module.gain.grad is not None


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_torch(shape, dtype):
    """Forward within a rounding step of torch; backward within two."""
    x = tokens(shape, offset=0.5, dtype=dtype)
    gain = gains(shape[-1], dtype=dtype)
    grad_y = tokens(shape, seed=1, dtype=dtype)

    def torch_function(x, gain, eps):
        return F.rms_norm(x, (x.shape[-1],), gain, eps)

    def torch_module(x, gain, eps):
        module = nn.RMSNorm(x.shape[-1], eps)
        return torch.func.functional_call(module, {"weight": gain}, (x,))

    ours = run(rms_norm, x, gain, grad_y, 1e-6)
    unit = torch.finfo(dtype).eps
    for theirs in (torch_function, torch_module):
        for a, b in zip(ours, run(theirs, x, gain, grad_y, 1e-6), strict=True):
            assert a.dtype == b.dtype == dtype
            size = float(b.double().abs().max())
            assert_close(a, b.double(), 4 * unit, 4 * unit * size)


def test_float16_gradients_match_float64():
    """Backward through autograd in low precision: two roundings at most."""
    for dtype in (torch.float16, torch.bfloat16):
        x = tokens((3, 4, 33), dtype=dtype)
        gain = gains(33, dtype=dtype)
        grad_y = tokens((3, 4, 33), seed=2, dtype=dtype)
        _, grad_x, grad_gain = run(rms_norm, x, gain, grad_y, 1e-6)
        expected = reference_gradients(grad_y, x, gain)
        unit = torch.finfo(dtype).eps
        for actual, wanted in zip((grad_x, grad_gain), expected, strict=True):
            assert actual.dtype == dtype
            assert_close(actual, wanted, unit, unit * float(wanted.abs().max()))
