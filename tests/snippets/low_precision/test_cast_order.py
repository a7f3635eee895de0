"""The three cast orders, bit for bit, against values rounded from float64.

Expected bits are computed in float64 and rounded with ``Tensor.to``; elements
whose float64 value is so close to a rounding boundary that float32 arithmetic may
fall on its other side are left out (fewer than one in a hundred).
"""

from functools import partial

import pytest
import torch

from snippets.low_precision.cast_order import gemma_style, llama_style, t5_style
from snippets.rms_norm.reference import rms_norm
from tests.same_results import on_views
from tests.wrong import suite

HALVES = (torch.float16, torch.bfloat16)
SHAPES = ((1,), (7,), (3, 13), (2, 3, 37), (2, 1, 5, 97))
SCALES = (1e-3, 1.0, 40.0)


# --- independent expectations -------------------------------------------------


def normalized(x, eps):
    """RMSNorm without gain, in float64."""
    x = x.double()
    return x / (x.pow(2).sum(-1, keepdim=True) / x.shape[-1] + eps).sqrt()


def near_boundary(exact, dtype):
    """Where a relative error of 2^-20 changes what exact rounds to."""
    step = exact * 2.0**-20
    return (exact - step).to(dtype) != (exact + step).to(dtype)


def expected_llama(x, gain, eps):
    inner = normalized(x, eps)
    product = gain.double() * inner.to(x.dtype).double()  # exact: 22 bits at most
    result = torch.promote_types(x.dtype, gain.dtype)
    return product.to(result), near_boundary(inner, x.dtype)


def expected_gemma(x, offset, eps):
    exact = normalized(x, eps) * (1 + offset.double())
    return exact.to(x.dtype), near_boundary(exact, x.dtype)


def expected_t5(x, gain, eps):
    inner = normalized(x, eps)
    product = gain.double() * inner.to(gain.dtype).double()
    return product.to(gain.dtype), near_boundary(inner, gain.dtype)


def gains(d, dtype, generator):
    """Gains from 0.5 to 1.75, none of them one; exact in dtype."""
    return (0.5 + 1.25 * torch.rand(d, generator=generator)).to(dtype) + 2.0**-7


def offsets(d, dtype, generator):
    """Offsets of both signs, many of them below bfloat16's step above one."""
    size = torch.rand(d, generator=generator) * 2 - 1
    return torch.where(size.abs() < 0.5, size * 2.0**-6, size).to(dtype)


def same_bits(function, expected, parameters, x_dtype, parameter_dtype, eps=1e-5):
    generator = torch.Generator().manual_seed(7)
    checked = skipped = 0
    for shape in SHAPES:
        for scale in SCALES:
            x = (scale * torch.randn(shape, generator=generator)).to(x_dtype)
            parameter = parameters(shape[-1], parameter_dtype, generator)
            y = function(x, parameter, eps)
            want, skip = expected(x, parameter, eps)
            assert y.dtype == want.dtype, (y.dtype, want.dtype)
            assert y.shape == x.shape
            wrong = (y != want) & ~skip
            assert not wrong.any(), f"{int(wrong.sum())} elements of {shape} differ"
            checked, skipped = checked + y.numel(), skipped + int(skip.sum())
    assert skipped < 0.01 * checked


# --- checks shared by the three styles ----------------------------------------


def large_rows_survive(function, parameter):
    """Squares overflow float16, the result does not."""
    x = torch.linspace(-4, 4, 64)
    x[5], x[6] = 300.0, -65504.0
    x = x.half()
    y = function(x, parameter(64), 1e-6).double()
    want = normalized(x, 1e-6)
    assert torch.allclose(y, want, rtol=2e-3, atol=1e-7)
    assert (y != 0).any()


def tiny_rows_survive(function, parameter):
    """Squares and eps underflow float16, the result does not."""
    x = torch.tensor([1e-4, -1e-4, 2e-4, 0.0]).half()
    for eps in (1e-8, 1e-12):
        y = function(x, parameter(4), eps).double()
        assert torch.allclose(y, normalized(x, eps), rtol=2e-3)
    y = function(torch.zeros(3).half(), parameter(3), 1e-12)
    assert (y == 0).all()


def long_rows_keep_their_scale(function, parameter):
    """A statistic summed in half precision stalls on a row of ones."""
    x = torch.ones(2, 4099, dtype=torch.bfloat16)
    y = function(x, parameter(4099).bfloat16(), 1e-6).double()
    assert (y == 1).all()


def epsilon_is_added_in_float32(function, parameter):
    """Mean square 2^-22 plus 2.4 of float16's smallest steps of 2^-24."""
    x = torch.full((5,), 2.0**-11).half()
    y = function(x, parameter(5), 2.4 * 2.0**-24).double()
    assert torch.allclose(y, normalized(x, 2.4 * 2.0**-24), rtol=1e-3)


def float32_values(function, parameter):
    generator = torch.Generator().manual_seed(3)
    x = 1e3 + torch.randn(3, 11, generator=generator)  # a large common offset
    y = function(x, parameter(11).float(), 1e-6)
    assert y.dtype == torch.float32
    assert torch.allclose(y.double(), normalized(x, 1e-6), rtol=1e-6)


def inputs_unchanged(function, parameter):
    for dtype in (torch.float32, *HALVES):
        x = torch.linspace(-3, 5, 9).to(dtype).reshape(3, 3)
        gain = parameter(3).to(dtype)
        before, gain_before = x.clone(), gain.clone()
        function(x, gain, 1e-6)
        assert torch.equal(x, before) and torch.equal(gain, gain_before)


def gradients(function, expected, parameters, dtype, tolerance):
    """Gradients of x and parameter against float64 autograd of the formula."""
    generator = torch.Generator().manual_seed(11)
    x = torch.randn(4, 3, 53, generator=generator).to(dtype).requires_grad_()
    parameter = parameters(53, dtype, generator).requires_grad_()
    probe = torch.randn(4, 3, 53, generator=generator).to(dtype)
    (function(x, parameter, 1e-5) * probe).sum().backward()

    wide_x = x.detach().double().requires_grad_()
    wide_parameter = parameter.detach().double().requires_grad_()
    y = normalized(wide_x, 1e-5) * expected(wide_parameter)
    (y * probe.double()).sum().backward()
    for leaf, wide in ((x, wide_x), (parameter, wide_parameter)):
        assert leaf.grad.dtype == dtype
        error = (leaf.grad.double() - wide.grad).norm() / wide.grad.norm()
        assert error < tolerance, error


def shared_checks(neutral, parameters, gain_of):
    """neutral(d) is the float16 parameter whose gain is one."""

    def true_gradients(function):
        gradients(function, gain_of, parameters, torch.float32, 1e-5)
        gradients(function, gain_of, parameters, torch.bfloat16, 1e-2)
        gradients(function, gain_of, parameters, torch.float16, 2e-3)

    checks = (
        inputs_unchanged,
        large_rows_survive,
        tiny_rows_survive,
        long_rows_keep_their_scale,
        epsilon_is_added_in_float32,
        float32_values,
    )
    return [*(partial(check, parameter=neutral) for check in checks), true_gradients]


def ones(d):
    return torch.ones(d, dtype=torch.float16)


def zeros(d):
    return torch.zeros(d, dtype=torch.float16)


# --- what belongs to one style ------------------------------------------------


def llama_bits(function):
    for dtype in HALVES:
        same_bits(function, expected_llama, gains, dtype, dtype)
        same_bits(function, expected_llama, gains, dtype, torch.float32)


def gemma_bits(function):
    for dtype in HALVES:
        same_bits(function, expected_gemma, offsets, dtype, dtype)
        same_bits(function, expected_gemma, offsets, dtype, torch.float32)


def gemma_keeps_small_offsets(function):
    """1 + 2^-8 rounds to 1 in bfloat16, but 0.75 times it rounds to the next value."""
    x = torch.tensor([3.0, -3.0]).bfloat16()
    offset = torch.full((2,), 2.0**-8).bfloat16()
    y = function(x, offset, 7.0)  # 3 / sqrt(9 + 7) = 0.75
    assert y.tolist() == [0.75390625, -0.75390625]


def t5_bits(function):
    for dtype in HALVES:
        for gain_dtype in HALVES:
            same_bits(function, expected_t5, gains, dtype, gain_dtype)
        same_bits(function, expected_t5, gains, torch.float32, dtype)


def t5_float32_gain(function):
    """No cast at all: float32 comes out, correct to float32's precision."""
    generator = torch.Generator().manual_seed(5)
    for dtype in HALVES:
        x = torch.randn(5, 31, generator=generator).to(dtype)
        gain = gains(31, torch.float32, generator)
        y = function(x, gain, 1e-6)
        assert y.dtype == torch.float32
        want = normalized(x, 1e-6) * gain.double()
        assert torch.allclose(y.double(), want, rtol=1e-6)


def long_gain_gradient(function):
    """A thousand rows of ones: 1000, but 256 if bfloat16 adds them one by one."""
    x = torch.ones(1000, 3, dtype=torch.bfloat16)
    gain = torch.full((3,), 1.5).bfloat16().requires_grad_()
    function(x, gain, 0.0).sum().backward()
    assert gain.grad.tolist() == [1000.0] * 3


LLAMA_CHECKS = [
    llama_bits,
    long_gain_gradient,
    *shared_checks(ones, gains, lambda g: g),
    on_views(
        torch.linspace(-3, 5, 24).reshape(2, 3, 4), torch.linspace(0.5, 1.5, 4), 1e-5
    ),
]
GEMMA_CHECKS = [
    gemma_bits,
    gemma_keeps_small_offsets,
    *shared_checks(zeros, offsets, lambda w: 1 + w),
    on_views(
        torch.linspace(-3, 5, 24).reshape(2, 3, 4), torch.linspace(0.5, 1.5, 4), 1e-5
    ),
]
T5_CHECKS = [
    t5_bits,
    t5_float32_gain,
    *shared_checks(ones, gains, lambda g: g),
    on_views(
        torch.linspace(-3, 5, 24).reshape(2, 3, 4), torch.linspace(0.5, 1.5, 4), 1e-5
    ),
]


def name(check):
    return getattr(check, "__name__", None) or check.func.__name__


# --- wrong variants -----------------------------------------------------------


def scale_of(x, eps):
    return torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps)


class GainGradientInHalf(torch.autograd.Function):
    """The right product; its gradient sums the rows in their own type."""

    @staticmethod
    def forward(ctx, gain, inner):
        ctx.save_for_backward(gain, inner)
        return gain * inner

    @staticmethod
    def backward(ctx, upstream):
        gain, inner = ctx.saved_tensors
        total = torch.zeros_like(gain)
        for row in (upstream * inner).reshape(-1, gain.shape[-1]).to(gain.dtype):
            total = total + row
        return total, upstream * gain


def gain_gradient_in_half(x, gain, eps):
    inner = (x.float() * scale_of(x, eps)).to(x.dtype)
    return GainGradientInHalf.apply(gain, inner)


test_llama_style, test_llama_rejects = suite(
    llama_style, LLAMA_CHECKS, functions=[gain_gradient_in_half]
)


test_gemma_style, test_gemma_rejects = suite(gemma_style, GEMMA_CHECKS)


test_t5_style, test_t5_rejects = suite(t5_style, T5_CHECKS)


# --- what the page says about the three together ------------------------------


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_llama_equals_t5_for_equal_half_types(dtype):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(17, 129, generator=generator).to(dtype)
    gain = gains(129, dtype, generator)
    assert torch.equal(llama_style(x, gain, 1e-6), t5_style(x, gain, 1e-6))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_llama_differs_from_t5_for_a_float32_gain(dtype):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(17, 129, generator=generator).to(dtype)
    gain = gains(129, torch.float32, generator)
    llama, t5 = llama_style(x, gain, 1e-6), t5_style(x, gain, 1e-6)
    assert llama.dtype == t5.dtype == torch.float32
    assert (llama != t5).double().mean() > 0.9  # Llama's was rounded to half


@pytest.mark.parametrize("dtype", (torch.float32, *HALVES), ids=str)
def test_reference_multiplies_before_the_cast(dtype):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(9, 65, generator=generator).to(dtype)
    offset = offsets(65, dtype, generator)
    gain = 1 + offset.float()
    assert torch.equal(rms_norm(x, gain, 1e-6), gemma_style(x, offset, 1e-6))
