"""The page's norms are those of transformers: values, gradients, dtypes.

Weights copied and not one; nothing downloaded. Where the arithmetic is the same
step for step the bits are equal; elsewhere half a unit of the last place.
"""

import pytest
import torch
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.olmo2.modeling_olmo2 import Olmo2RMSNorm
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm
from transformers.models.t5.modeling_t5 import T5LayerNorm

from snippets.low_precision.cast_order import gemma_style, llama_style, t5_style
from snippets.rms_norm.gain_offset import rms_norm_offset
from snippets.rms_norm.reference import RMSNorm, rms_norm
from tests.snippets.rms_norm.float64 import assert_close, gains, tokens

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
SHAPES = ((1, 1), (3, 7), (2, 5, 31), (2, 3, 4, 16))
EPS = 1e-3
CAST_THEN_GAIN = (LlamaRMSNorm, Qwen3RMSNorm)
GAIN_THEN_CAST = (Olmo2RMSNorm,)
OFFSET = (GemmaRMSNorm, Gemma2RMSNorm, Gemma3RMSNorm)
PLAIN = (*CAST_THEN_GAIN, *GAIN_THEN_CAST, T5LayerNorm)


def run(function, x, weight, grad_y):
    """Output, grad_x and grad_weight; function takes x and weight."""
    x, weight = (each.clone().requires_grad_() for each in (x, weight))
    y = function(x, weight)
    found = torch.autograd.grad(y, (x, weight), grad_y.to(y.dtype))
    return y.detach(), *found


def module_as_function(cls):
    """A transformers module as a function of x and its weight."""

    def function(x, weight):
        module = cls(x.shape[-1], eps=EPS)
        return torch.func.functional_call(module, {"weight": weight}, (x,))

    return function


def inputs(shape, dtype, weight_dtype=None):
    x = tokens(shape, offset=0.5, dtype=dtype)
    grad_y = tokens(shape, seed=1).clamp(-8, 8).to(dtype)
    return x, gains(shape[-1], dtype=weight_dtype or dtype), grad_y


def same_bits(ours, theirs, x, weight, grad_y):
    found = run(ours, x, weight, grad_y), run(theirs, x, weight, grad_y)
    for what, a, b in zip(("y", "grad_x", "grad_weight"), *found, strict=True):
        assert a.dtype == b.dtype, f"{what}: {a.dtype}, theirs {b.dtype}"
        assert torch.equal(a, b), f"{what} differs"


def near(ours, theirs, x, weight, grad_y, units):
    """Equal up to some units in the last place of each tensor's largest value."""
    found = run(ours, x, weight, grad_y), run(theirs, x, weight, grad_y)
    unit = torch.finfo(x.dtype).eps
    for what, a, b in zip(("y", "grad_x", "grad_weight"), *found, strict=True):
        assert a.dtype == b.dtype, f"{what}: {a.dtype}, theirs {b.dtype}"
        parts = 1.0
        if what == "grad_x":  # its two terms cancel: compare with either of them
            rms = x.double().square().mean(-1, keepdim=True).add(EPS).sqrt()
            parts = ((grad_y.double() * weight.double()) / rms).abs().max()
        size = max(float(b.double().abs().max()), float(parts))
        assert_close(a, b.double(), units * unit, units * unit * size, what)


# --- the cast orders of low_precision/cast_order.py ---------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cls", CAST_THEN_GAIN, ids=lambda c: c.__name__)
def test_llama_style(cls, shape, dtype):
    def ours(x, weight):
        return llama_style(x, weight, EPS)

    for weight_dtype in {dtype, torch.float32}:
        same_bits(ours, module_as_function(cls), *inputs(shape, dtype, weight_dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cls", OFFSET, ids=lambda c: c.__name__)
def test_gemma_style(cls, shape, dtype):
    def ours(x, weight):
        return gemma_style(x, weight, EPS)

    for weight_dtype in {dtype, torch.float32}:
        same_bits(ours, module_as_function(cls), *inputs(shape, dtype, weight_dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_t5_style(shape, dtype):
    def ours(x, weight):
        return t5_style(x, weight, EPS)

    for weight_dtype in {dtype, torch.float32}:
        same_bits(
            ours, module_as_function(T5LayerNorm), *inputs(shape, dtype, weight_dtype)
        )


# --- rms_norm, RMSNorm and rms_norm_offset -------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cls", GAIN_THEN_CAST, ids=lambda c: c.__name__)
def test_rms_norm_has_olmo_2s_order(cls, shape, dtype):
    def ours(x, weight):
        return rms_norm(x, weight, EPS)

    near(ours, module_as_function(cls), *inputs(shape, dtype), units=2)
    x, weight, _ = inputs(shape, dtype)
    assert torch.equal(ours(x, weight), module_as_function(cls)(x, weight))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "cls", (*CAST_THEN_GAIN, T5LayerNorm), ids=lambda c: c.__name__
)
def test_rms_norm_is_a_rounding_away(cls, shape, dtype):
    def ours(x, weight):
        return rms_norm(x, weight, EPS)

    near(ours, module_as_function(cls), *inputs(shape, dtype), units=4)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cls", OFFSET, ids=lambda c: c.__name__)
def test_rms_norm_offset(cls, shape, dtype):
    def ours(x, weight):
        return rms_norm_offset(x, weight, EPS)

    near(ours, module_as_function(cls), *inputs(shape, dtype), units=2)
    x, weight, _ = inputs(shape, dtype)
    assert torch.equal(ours(x, weight), module_as_function(cls)(x, weight))


@pytest.mark.parametrize("cls", PLAIN, ids=lambda c: c.__name__)
def test_the_module_with_a_copied_weight(cls):
    ours, theirs = RMSNorm(31, EPS), cls(31, eps=EPS)
    with torch.no_grad():
        ours.gain.copy_(gains(31))
        theirs.weight.copy_(ours.gain)
    x = tokens((2, 5, 31), dtype=torch.float32)
    assert_close(ours(x), theirs(x).detach().double(), 1e-6)


# --- what does not agree, and must not -----------------------------------------


@pytest.mark.parametrize(
    "cls", (*CAST_THEN_GAIN, T5LayerNorm), ids=lambda c: c.__name__
)
@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_a_float32_weight_widens_the_output(cls, dtype):
    x, weight, _ = inputs((3, 7), dtype, torch.float32)
    assert module_as_function(cls)(x, weight).dtype == torch.float32
    assert rms_norm(x, weight, EPS).dtype == dtype


@pytest.mark.parametrize("cls", (*GAIN_THEN_CAST, *OFFSET), ids=lambda c: c.__name__)
@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_a_float32_weight_keeps_the_dtype(cls, dtype):
    x, weight, _ = inputs((3, 7), dtype, torch.float32)
    assert module_as_function(cls)(x, weight).dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_the_orders_differ_in_low_precision(dtype):
    x, weight, _ = inputs((8, 64), dtype)
    llama = module_as_function(LlamaRMSNorm)(x, weight)
    olmo = module_as_function(Olmo2RMSNorm)(x, weight)
    assert not torch.equal(llama, olmo)


def test_gemma_is_not_plain():
    x, weight, _ = inputs((3, 7), torch.float32)
    gap = module_as_function(GemmaRMSNorm)(x, weight) - rms_norm(x, weight, EPS)
    assert float(gap.abs().max()) > 0.5


@pytest.mark.parametrize("cls", (*PLAIN, *OFFSET), ids=lambda c: c.__name__)
def test_float64_is_computed_in_float32(cls):
    """Ours keeps float64; theirs does not, whatever dtype they return."""
    x = tokens((4, 33))
    weight = torch.zeros(33).double() if cls in OFFSET else torch.ones(33).double()
    theirs = module_as_function(cls)(x, weight)
    gap = float((theirs - rms_norm(x, eps=EPS)).abs().max())
    assert 1e-12 < gap < 1e-5
