"""layer_norm and LayerNorm against float64, torch and the classes of transformers."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.layer_norm.reference import LayerNorm, layer_norm
from tests.same_results import on_views
from tests.snippets.layer_norm.float64 import (
    SHAPES,
    assert_close,
    biases,
    gains,
    reference,
    reference_gradients,
    tokens,
)
from tests.wrong import suite

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
RTOL = {
    torch.float64: 1e-11,
    torch.float32: 2e-6,
    torch.bfloat16: 2**-8 * 1.01,
    torch.float16: 2**-11 * 1.02,
}


def _expect(norm, x, gain, bias, eps, rtol, atol=None):
    expected = reference(x, gain, bias, eps)
    actual = norm(x, gain, bias, eps)
    assert actual.dtype == x.dtype, f"dtype {actual.dtype}"
    assert_close(actual, expected, rtol, 4 * rtol if atol is None else atol)


def check_shapes_and_eps(norm):
    for shape in SHAPES:
        d = shape[-1]
        for eps in (1e-5, 1e-12, 0.3):
            _expect(norm, tokens(shape), gains(d), biases(d), eps, 1e-11, 1e-9)


def check_without_parameters(norm):
    x = tokens((3, 7))
    for gain, bias in ((None, None), (gains(7), None), (None, biases(7))):
        _expect(norm, x, gain, bias, 1e-5, 1e-11)


def check_two_features(norm):
    x = torch.tensor([[1.0, 2.0], [7.0, -4.0]], dtype=torch.float64)
    _expect(norm, x, None, None, 1e-5, 1e-12)


def check_every_dtype(norm):
    for dtype in DTYPES:
        x, gain = tokens((2, 5, 33), dtype=dtype), gains(33, dtype=dtype)
        bias = biases(33, dtype=dtype)
        slack = RTOL[dtype] if dtype.itemsize > 2 else 1e-5
        _expect(norm, x, gain, bias, 1e-5, RTOL[dtype], slack * 4)


def check_gain_of_another_dtype(norm):
    for dtype in (torch.bfloat16, torch.float16):
        x = tokens((5, 33), dtype=dtype)
        gain, bias = gains(33, dtype=torch.float32), biases(33, dtype=torch.float32)
        _expect(norm, x, gain, bias, 1e-5, RTOL[dtype], 4e-5)


def check_large_float16(norm):
    x = tokens((5, 33), dtype=torch.float64)
    x = (2000 * x / x.abs().amax(-1, keepdim=True)).to(torch.float16)
    _expect(norm, x, None, None, 1e-5, RTOL[torch.float16], 1e-5)


def check_large_mean(norm):
    generator = torch.Generator().manual_seed(0)
    for mean, atol in ((10, 1e-5), (100, 1e-4), (1000, 1e-3), (3000, 3e-3)):
        x = torch.randn(16, 64, generator=generator, dtype=torch.float64)
        _expect(norm, (x + mean).float(), None, None, 1e-5, 0.0, atol)


def check_small_and_large_spread(norm):
    for scale in (1e-6, 1e-4, 1e-2, 1e4, 1e15):
        x = tokens((4, 13), scale=scale, dtype=torch.float32)
        _expect(norm, x, gains(13), biases(13), 1e-5, 4e-6, 1e-5)


def check_constant_rows(norm):
    for value in (0.0, 1.0, 1234.0):
        x = torch.full((3, 256), value)
        _expect(norm, x, None, biases(256), 1e-5, 1e-6)


def check_gradient(norm):
    for shape in ((7,), (3, 5, 13)):
        x, gain = tokens(shape, offset=2.0), gains(shape[-1])
        bias, grad_y = biases(shape[-1]), tokens(shape, seed=1)
        inputs = [each.clone().requires_grad_() for each in (x, gain, bias)]
        y = norm(*inputs, 1e-5)
        actual = torch.autograd.grad(y, inputs, grad_y, allow_unused=True)
        wanted = reference_gradients(grad_y, x, gain, 1e-5)
        for name, a, b in zip(("x", "gain", "bias"), actual, wanted, strict=True):
            assert a is not None, f"no gradient for {name}"
            assert_close(a, b, 1e-9, 1e-9, name)


def check_input_unchanged(norm):
    for dtype in DTYPES:
        x = tokens((3, 7), dtype=dtype)
        before = x.clone()
        norm(x, gains(7, dtype=dtype), biases(7, dtype=dtype), 1e-5)
        assert torch.equal(x, before), "the input was modified"


def check_nan_stays_in_its_row(norm):
    x = tokens((3, 7), dtype=torch.float32)
    healthy = norm(x, None, None, 1e-5)
    x[1, 2] = torch.nan
    y = norm(x, None, None, 1e-5)
    assert bool(y[1].isnan().all()), "a NaN was hidden"
    assert torch.equal(y[::2], healthy[::2]), "a NaN reached another token"


CHECKS = [
    check_shapes_and_eps,
    check_without_parameters,
    check_two_features,
    check_every_dtype,
    check_gain_of_another_dtype,
    check_large_float16,
    check_large_mean,
    check_small_and_large_spread,
    check_constant_rows,
    check_gradient,
    check_input_unchanged,
    check_nan_stays_in_its_row,
    on_views(tokens((2, 3, 7)), gains(7), biases(7), 1e-5),
]


test_right, test_known_wrong = suite(layer_norm, CHECKS)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_torch(shape, dtype):
    """The same values and gradients as F.layer_norm."""
    d, results = shape[-1], []
    for norm in (layer_norm, lambda *a: F.layer_norm(a[0], (d,), *a[1:])):
        x = tokens(shape, dtype=dtype).requires_grad_()
        gain = gains(d, dtype=dtype).requires_grad_()
        bias = biases(d, dtype=dtype).requires_grad_()
        y = norm(x, gain, bias, 1e-3)
        grad_y = tokens(shape, seed=1).clamp(-4, 4).to(dtype)
        results.append((y, *torch.autograd.grad(y, (x, gain, bias), grad_y)))
    unit = torch.finfo(dtype).eps
    spread = tokens(shape, dtype=dtype).double().var(-1, correction=0, keepdim=True)
    terms = 12 * torch.rsqrt(spread + 1e-3)  # grad_x cancels: compare with its terms
    for i, (a, b) in enumerate(zip(*results, strict=True)):
        assert a.dtype == b.dtype == dtype
        size = terms if i == 1 else float(b.detach().double().abs().max()) + 1
        if shape[-1] == 1:  # torch subtracts r μ from r x: all digits cancel
            size = size + 30 * terms.max()
        assert_close(a, b.detach().double(), 4 * unit, 8 * unit * size)


@pytest.mark.parametrize(("gain", "bias"), [(1, 1), (1, 0), (0, 0)])
def test_module_starts_as_torch_starts(gain, bias):
    ours = LayerNorm(31, 1e-4, bool(gain), bool(bias))
    theirs = nn.LayerNorm(31, 1e-4, elementwise_affine=bool(gain), bias=bool(bias))
    pairs = zip(ours.parameters(), theirs.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    x = tokens((2, 3, 31), dtype=torch.float32)
    assert_close(ours(x), theirs(x).detach().double(), 2e-6, 4e-6)


def test_module_with_a_bias_alone():
    """What nn.LayerNorm does not offer."""
    norm = LayerNorm(5, gain=False)
    assert [name for name, _ in norm.named_parameters()] == ["bias"]


def test_a_shape_of_two_axes_mixes_tokens():
    """nn.LayerNorm((time, d)): the last token changes the first one's output."""
    x = tokens((4, 6), dtype=torch.float32)
    later = x.clone()
    later[-1] *= 10
    mixed, apart = nn.LayerNorm((4, 6)), nn.LayerNorm(6)
    assert (mixed(x) - mixed(later))[0].abs().max() > 0.1
    assert torch.equal(apart(x)[0], apart(later)[0])


def _public_classes():
    from transformers.models.cohere.modeling_cohere import CohereLayerNorm
    from transformers.models.cohere2.modeling_cohere2 import Cohere2LayerNorm
    from transformers.models.nemotron.modeling_nemotron import NemotronLayerNorm1P
    from transformers.models.olmo.modeling_olmo import OlmoLayerNorm

    return {
        "cohere": (CohereLayerNorm(33, eps=1e-4), 1e-4, 0.0),
        "cohere2": (Cohere2LayerNorm(33, eps=1e-4), 1e-4, 0.0),
        "nemotron": (NemotronLayerNorm1P(33, eps=1e-4), 1e-4, 1.0),
        "olmo": (OlmoLayerNorm(33), 1e-5, 0.0),
    }


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize("model", ["cohere", "cohere2", "nemotron", "olmo"])
def test_public_class(model, dtype):
    """Values and gradients equal those of layer_norm with the same parameters."""
    theirs, eps, offset = _public_classes()[model]
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            parameter.copy_(gains(33) if name == "weight" else biases(33))
    theirs = theirs.to(dtype)
    weight, bias = getattr(theirs, "weight", None), getattr(theirs, "bias", None)
    gain = None if weight is None else (weight + offset).detach().requires_grad_()
    shift = None if bias is None else bias.detach().clone().requires_grad_()
    results, grad_y = [], tokens((2, 5, 33), seed=1).clamp(-4, 4).to(dtype)
    for norm, learned in (
        (theirs, (weight, bias)),
        (lambda x: layer_norm(x, gain, shift, eps), (gain, shift)),
    ):
        x = tokens((2, 5, 33), offset=1.0, dtype=dtype).requires_grad_()
        y = norm(x)
        wanted = (x, *(each for each in learned if each is not None))
        results.append((y, *torch.autograd.grad(y, wanted, grad_y)))
    unit = torch.finfo(dtype).eps
    for a, b in zip(*results, strict=True):
        assert a.dtype == b.dtype == dtype
        size = float(a.detach().double().abs().max()) + 1
        assert_close(b, a.detach().double(), 4 * unit, 8 * unit * size)


def test_nemotron_reads_its_weight_as_an_offset():
    norm = _public_classes()["nemotron"][0]
    nn.init.zeros_(norm.weight)
    x = tokens((3, 33), dtype=torch.float32)
    assert_close(norm(x), layer_norm(x, eps=1e-4).double(), 2e-6, 4e-6)
