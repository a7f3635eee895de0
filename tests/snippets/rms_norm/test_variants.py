"""The page's small variants: eps outside, 1 + gamma, pRMSNorm; and its counts."""

import pytest
import torch
from torch import nn

from snippets.rms_norm.epsilon import eps_outside
from snippets.rms_norm.gain_offset import rms_norm_offset
from snippets.rms_norm.parameters import llama_shapes
from snippets.rms_norm.partial import partial_rms_norm
from snippets.rms_norm.reference import rms_norm
from snippets.rms_norm.small_decoder import SmallDecoder
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

# eps outside the root --------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_eps_outside(shape):
    x = tokens(shape)
    d = shape[-1]
    rms = torch.linalg.vector_norm(x, dim=-1, keepdim=True) / d**0.5
    assert_close(eps_outside(x, 1e-2), x / (rms + 1e-2), 1e-12)


def test_eps_placements_agree_for_large_inputs_only():
    x = tokens((4, 9))
    assert_close(eps_outside(1e6 * x, 1e-6), reference(1e6 * x), 1e-9)
    faint = 1e-6 * x
    gap = (eps_outside(faint, 1e-6) - reference(faint)).abs().max()
    assert float(gap) > 0.1


def test_gradient_at_zero():
    """Inside: 1 / √eps. Outside, written with a root: not a number."""
    zero = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    (inside,) = torch.autograd.grad(rms_norm(zero, eps=1e-6)[0], zero)
    (outside,) = torch.autograd.grad(eps_outside(zero, 1e-6)[0], zero)
    assert_close(inside, torch.tensor([1e3, 0, 0, 0]).double(), 1e-12)
    assert bool(outside.isnan().all())


# 1 + gamma -------------------------------------------------------------------


def check_offset_values_and_gradients(norm):
    for shape in SHAPES:
        x = tokens(shape).requires_grad_()
        offset = (gains(shape[-1]) - 1.5).requires_grad_()
        grad_y = tokens(shape, seed=1)
        y = norm(x, offset, 1e-4)
        gain = 1 + offset.detach()
        assert_close(y, reference(x, gain, 1e-4), 1e-12)
        actual = torch.autograd.grad(y, (x, offset), grad_y)
        expected = reference_gradients(grad_y, x, gain, 1e-4)
        for ours, wanted in zip(actual, expected, strict=True):
            size = float(wanted.abs().max())
            assert_close(ours, wanted, 1e-9, 1e-9 * size, "gradient")


def check_offset_starts_as_plain(norm):
    x = tokens((3, 5, 8), dtype=torch.float32)
    expected = rms_norm(x, torch.ones(8))
    assert torch.equal(norm(x, torch.zeros(8), 1e-6), expected)


def check_offset_in_low_precision(norm):
    for dtype in (torch.bfloat16, torch.float16):
        x = tokens((5, 33), dtype=dtype)
        steps = torch.arange(1, 34) * torch.finfo(dtype).eps / 8
        offset = steps.to(dtype)  # 1 + offset needs more bits than dtype has
        y = norm(x, offset, 1e-6)
        assert y.dtype == dtype
        expected = reference(x, 1 + offset.double())
        unit = torch.finfo(dtype).eps
        floor = torch.finfo(dtype).smallest_normal * unit
        assert_close(y, expected, 0.505 * unit, floor)


OFFSET_CHECKS = [
    check_offset_values_and_gradients,
    check_offset_starts_as_plain,
    check_offset_in_low_precision,
    on_views(tokens((2, 3, 7)), gains(7), 1e-4),
]


test_offset, test_offset_rejects = suite(rms_norm_offset, OFFSET_CHECKS)


# pRMSNorm --------------------------------------------------------------------


def check_partial(norm):
    for shape in SHAPES:
        d = shape[-1]
        for count in {1, (d + 2) // 3, d}:
            x = tokens(shape, offset=0.5).requires_grad_()
            y = norm(x, count, 1e-3)
            values = x.detach()
            length = torch.linalg.vector_norm(values[..., :count], dim=-1, keepdim=True)
            scale = torch.sqrt(length**2 / count + 1e-3)
            assert_close(y, values / scale, 1e-12)
            grad_y = tokens(shape, seed=1)
            (grad_x,) = torch.autograd.grad(y, x, grad_y)
            along = (grad_y * values).sum(-1, keepdim=True) / (count * scale**3)
            expected = grad_y / scale
            expected[..., :count] -= values[..., :count] * along
            size = expected.abs().amax(-1, keepdim=True)
            assert_close(grad_x, expected, 1e-9, 1e-9 * size, "gradient")


def check_partial_with_all_features_is_rms_norm(norm):
    x = tokens((3, 5, 11))
    assert_close(norm(x, 11, 1e-6), reference(x), 1e-12)


def check_partial_keeps_scale_invariance(norm):
    x = tokens((3, 12))
    assert_close(norm(5 * x, 4, 0.0), norm(x, 4, 0.0).detach(), 1e-12)


PARTIAL_CHECKS = [
    check_partial,
    check_partial_with_all_features_is_rms_norm,
    check_partial_keeps_scale_invariance,
    on_views(tokens((2, 3, 7)), 3, 1e-3),
]


test_partial, test_partial_rejects = suite(partial_rms_norm, PARTIAL_CHECKS)


# Counts and the small decoder ------------------------------------------------


def test_llama_shapes_count_a_real_model():
    """Every shape once, as in a model built from torch's own layers."""
    d, layers, hidden, vocabulary = 6, 3, 10, 17
    model = nn.ModuleList([nn.Embedding(vocabulary, d)])
    for _ in range(layers):
        model += [nn.RMSNorm(d), nn.RMSNorm(d)]
        model += [nn.Linear(d, d, bias=False) for _ in range(4)]
        model += [nn.Linear(d, hidden, bias=False) for _ in range(2)]
        model += [nn.Linear(hidden, d, bias=False)]
    model += [nn.RMSNorm(d), nn.Linear(d, vocabulary, bias=False)]
    groups = llama_shapes(d, layers, hidden, vocabulary).values()
    ours = sorted(tuple(sorted(shape)) for group in groups for shape in group)
    assert ours == sorted(tuple(sorted(p.shape)) for p in model.parameters())


def test_decoder_is_causal():
    torch.manual_seed(0)
    model = SmallDecoder(12, 2, 3, 8).double()
    text = torch.randint(256, (2, 8))
    other = text.clone()
    other[:, -1] = (other[:, -1] + 1) % 256
    assert_close(model(other)[:, :-1], model(text)[:, :-1].detach(), 1e-12)
    assert not torch.equal(model(other)[:, -1], model(text)[:, -1])


def test_decoder_is_pre_norm():
    """With silent branches the stream is the embedding, untouched by a norm."""
    torch.manual_seed(0)
    model = SmallDecoder(12, 2, 3, 8, norm=nn.RMSNorm)
    with torch.no_grad():
        for branch in model.branches:
            branch.body.writer.weight.zero_()
            branch.body.writer.bias.zero_()
    text = torch.randint(256, (2, 5))
    stream = model.token(text) + model.position.weight[:5]
    assert torch.equal(model(text), model.head(model.norm(stream)))


def test_decoder_attention_equals_a_plain_softmax():
    torch.manual_seed(0)
    attention = SmallDecoder(12, 1, 3, 8).double().branches[0].body
    x = tokens((2, 5, 12))
    q, k, v = attention.reader(x).detach().reshape(2, 5, 3, 3, 4).unbind(2)
    expected = torch.zeros(2, 5, 12, dtype=torch.float64)
    for head in range(3):
        for query in range(5):
            seen = slice(0, query + 1)
            scores = (k[:, seen, head] * q[:, query, None, head]).sum(-1) / 4**0.5
            weights = scores.softmax(-1)[..., None]
            mixed = (weights * v[:, seen, head]).sum(1)
            expected[:, query, 4 * head : 4 * head + 4] = mixed
    assert_close(attention(x), attention.writer(expected).detach(), 1e-10)
