"""The other norms and relatives against torch and transformers; the relations."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers.models.bit.modeling_bit import WeightStandardizedConv2d
from transformers.models.wav2vec2.configuration_wav2vec2 import Wav2Vec2Config
from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2GroupNormConvLayer

from snippets.norm_family.family import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from snippets.norm_family.normalize import normalize
from snippets.norm_family.weights import spectral_norm, weight_standardization
from tests.snippets.norm_family.float64 import (
    assert_close,
    channels,
    gradients,
    numbers,
)


@pytest.mark.parametrize("shape", [(9, 6), (3, 6, 5), (2, 6, 3, 4)], ids=str)
def test_batch_norm(shape):
    x, (gain, bias) = numbers(shape, offset=2.0), channels(6)

    def library(x, gain, bias):
        return F.batch_norm(x, None, None, gain, bias, training=True, eps=1e-3)

    ours = gradients(lambda *each: batch_norm(*each, 1e-3), x, gain, bias)
    for a, b in zip(ours, gradients(library, x, gain, bias), strict=True):
        assert_close(a, b, 1e-10, 1e-10 * float(b.abs().max()))


@pytest.mark.parametrize("shape", [(6,), (5, 6), (2, 3, 6), (2, 1, 3, 6)], ids=str)
def test_token_norms(shape):
    draws = torch.Generator().manual_seed(1)
    x = torch.randn(shape, generator=draws, dtype=torch.float64) + 2
    gain, bias = channels(6)
    pairs = (
        (lambda x, g, b: layer_norm(x, g, b, 1e-3), nn.LayerNorm(6, 1e-3)),
        (lambda x, g, b: rms_norm(x, g, 1e-3), nn.RMSNorm(6, 1e-3)),
    )
    for function, module in pairs:

        def library(x, g, b, module=module):
            parameters = {"weight": g, "bias": b}
            names = dict(module.named_parameters())
            parameters = {name: parameters[name] for name in names}
            return torch.func.functional_call(module, parameters, (x,))

        for a, b in zip(
            gradients(function, x, gain, bias),
            gradients(library, x, gain, bias),
            strict=True,
        ):
            assert_close(a, b, 1e-10, 1e-10 * max(float(b.abs().max()), 1e-3))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str
)
def test_one_rounding_at_the_end(dtype):
    x = numbers((3, 6, 33), offset=3.0, dtype=dtype)
    gain, bias = (each.to(dtype) for each in channels(6))
    unit = {torch.float32: 4e-6, torch.bfloat16: 2**-8, torch.float16: 2**-11}[dtype]
    for norm, value in (
        (lambda *each: batch_norm(*each, 1e-5), x),
        (lambda *each: layer_norm(*each, 1e-5), x.mT),
        (lambda x, g, b: rms_norm(x, g, 1e-5), x.mT),
    ):
        y = norm(value, gain, bias)
        assert y.dtype == dtype
        exact = norm(value.double(), gain.double(), bias.double())
        assert_close(y, exact, 1.02 * unit, 4e-6)


def test_normalize_stays_wide_and_leaves_its_input():
    for dtype, wide in ((torch.float16, torch.float32), (torch.float64, torch.float64)):
        x = numbers((2, 6, 5), dtype=dtype)
        before = x.clone()
        assert normalize(x, (1, 2)).dtype == wide
        assert torch.equal(x, before)


def test_a_constant_set_is_zero():
    x = torch.full((2, 3, 4), 7.0)
    assert torch.equal(normalize(x, (2,)), torch.zeros(2, 3, 4))


# Relations ------------------------------------------------------------------


def test_what_torch_says_of_sets_of_one_cell():
    x, (gain, bias) = numbers((3, 6, 1)), channels(6)
    with pytest.raises(ValueError, match="more than 1"):
        F.instance_norm(x)
    with pytest.raises(ValueError, match="more than 1"):
        F.batch_norm(x[:1], None, None, training=True)
    silent = F.group_norm(x, 6, gain, bias)
    expected = bias[:, None].expand(3, 6, 1)
    assert_close(silent, expected, 1e-12, 1e-12)
    assert_close(instance_norm(x, gain, bias), expected, 1e-12, 1e-12)


def test_one_group_is_layer_norm_over_channels_and_positions():
    x, (gain, bias) = numbers((3, 6, 5)), channels(6)
    exact = F.layer_norm(x, (6, 5)) * gain[:, None] + bias[:, None]
    assert_close(group_norm(x, 1, gain, bias), exact, 1e-10, 1e-10)
    tokenwise = layer_norm(x.mT, gain, bias).mT
    assert float((exact - tokenwise).abs().max()) > 0.5


def test_a_group_a_channel_is_instance_norm():
    x, (gain, bias) = numbers((3, 6, 5)), channels(6)
    one = group_norm(x, 6, gain, bias)
    assert_close(one, instance_norm(x, gain, bias), 1e-12, 1e-12)
    single = batch_norm(x[:1], gain, bias)
    assert_close(single, instance_norm(x[:1], gain, bias), 1e-12, 1e-12)


def test_wav2vec_calls_an_instance_norm_group_norm():
    config = Wav2Vec2Config(conv_dim=(6,), conv_kernel=(3,), conv_stride=(1,))
    layer = Wav2Vec2GroupNormConvLayer(config, 0).layer_norm.double()
    assert layer.num_groups == layer.num_channels == 6
    layer.weight.data, layer.bias.data = channels(6)
    x = numbers((2, 6, 9))
    ours = instance_norm(x, layer.weight, layer.bias, layer.eps)
    assert_close(ours, layer(x), 1e-10, 1e-10)


def test_who_sees_whom():
    """The page's table, from gradients this time: who has an influence."""
    gain, bias = channels(6)
    x = numbers((3, 6, 5)).requires_grad_()
    sees = {
        "batch": (batch_norm(x, gain, bias), "yes no no yes"),
        "instance": (instance_norm(x, gain, bias), "no no no yes"),
        "group": (group_norm(x, 3, gain, bias), "no yes no yes"),
        "layer": (layer_norm(x.mT, gain, bias).mT, "no yes yes no"),
        "rms": (rms_norm(x.mT, gain).mT, "no yes yes no"),
    }
    for name, (y, wanted) in sees.items():
        (grad,) = torch.autograd.grad(y[0, 0, 0], x)
        cells = grad[-1, 0, 0], grad[0, 1, 0], grad[0, -1, 0], grad[0, 0, -1]
        found = " ".join("yes" if cell != 0 else "no" for cell in cells)
        assert found == wanted, name


# Weights --------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 7), (3, 5, 2), (2, 3, 3, 2)], ids=str)
def test_weight_standardization(shape):
    w = numbers(shape, offset=1.0)
    rows = w.flatten(1)
    exact = (rows - rows.mean(1, keepdim=True)) / torch.sqrt(
        rows.var(1, correction=0, keepdim=True) + 1e-3
    )
    ours = weight_standardization(w, 1e-3)
    assert_close(ours.flatten(1), exact, 1e-10, 1e-10)


def test_weight_standardization_as_in_bit():
    layer = WeightStandardizedConv2d(3, 4, 3, padding=0, eps=1e-6).double()
    x = numbers((2, 3, 5, 5))
    weight = weight_standardization(layer.weight, 1e-6)
    assert_close(F.conv2d(x, weight), layer(x), 1e-9, 1e-9)


def test_spectral_norm_lengthens_nothing():
    w = numbers((5, 7))
    ours = spectral_norm(w)
    assert float(torch.linalg.svdvals(ours)[0]) == pytest.approx(1, rel=1e-12)
    x = numbers((7, 50), seed=3)
    assert bool(((ours @ x).norm(dim=0) <= x.norm(dim=0) * (1 + 1e-12)).all())


def test_spectral_norm_is_the_limit_of_power_iteration():
    torch.manual_seed(0)
    layer = nn.Linear(7, 5, bias=False).double()
    raw = layer.weight.detach().clone()
    nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=300)
    assert_close(layer.weight, spectral_norm(raw), 1e-6, 1e-6)
