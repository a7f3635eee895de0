"""Sandwich and reordered blocks: explicit formulas, and layers of Transformers."""

import pytest
import torch
from torch import nn
from transformers import Gemma2Config, Gemma3TextConfig, Glm4Config, Olmo2Config
from transformers.models.gemma2.modeling_gemma2 import Gemma2DecoderLayer
from transformers.models.gemma3.modeling_gemma3 import Gemma3DecoderLayer
from transformers.models.glm4.modeling_glm4 import Glm4DecoderLayer
from transformers.models.olmo2.modeling_olmo2 import Olmo2DecoderLayer

from snippets.rms_norm.reference import RMSNorm
from snippets.sandwich_norm.blocks import ReorderedNorm, SandwichNorm
from tests.same_results import of_module
from tests.wrong import suite

SHAPES = ((7,), (1, 5), (3, 7), (2, 3, 31), (1, 2, 3, 9))


class Bend(nn.Module):
    """A branch that is neither linear nor homogeneous; shift is an argument."""

    def __init__(self, d):
        super().__init__()
        generator = torch.Generator().manual_seed(d)
        matrix = torch.randn(d, d, generator=generator, dtype=torch.float64)
        self.matrix = nn.Parameter(matrix)

    def forward(self, x, shift=0.0, *, factor=1.0):
        return factor * (torch.tanh(x @ self.matrix.T) + 0.3 * x.square()) + shift


def tokens(shape, scale=1.0, offset=0.0, seed=0):
    generator = torch.Generator().manual_seed(sum(shape) + seed)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    return scale * x + offset


def filled(block):
    """Gains (and biases) that are not one (and zero), float64."""
    block = block.double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in block.named_parameters():
            if "matrix" not in name:
                noise = torch.rand(parameter.shape, generator=generator)
                parameter.copy_(0.4 + noise.double())
    return block


def rms(x, norm):
    d = x.shape[-1]
    length = (torch.linalg.vector_norm(x, dim=-1, keepdim=True) ** 2 + d * 1e-6) ** 0.5
    return d**0.5 * x / length * norm.gain


def layer(x, norm):
    z = x - x.sum(-1, keepdim=True) / x.shape[-1]
    return z / (z.pow(2).mean(-1, keepdim=True) + 1e-5) ** 0.5 * norm.weight + norm.bias


def sandwich(block, x, norm, *args, **options):
    return x + norm(block.branch(norm(x, block.pre), *args, **options), block.post)


def reordered(block, x, norm, *args, **options):
    return x + norm(block.branch(x, *args, **options), block.post)


def close(actual, wanted, tolerance=1e-9):
    assert actual.shape == wanted.shape
    gap = (actual - wanted).abs().detach()
    bound = tolerance * (1 + wanted.abs().detach())
    assert bool((gap <= bound).all()), float(gap.max())


def checks(formula, names):
    def check_parameters(make):
        found = {name for name, _ in make(Bend(5), 5).named_parameters()}
        assert found == {"branch.matrix", *(f"{name}.gain" for name in names)}

    def check_input_unchanged(make):
        block, x = filled(make(Bend(5), 5)), tokens((3, 5))
        before = x.clone()
        with torch.no_grad():
            block(x)
        assert torch.equal(x, before)

    def check_values(make):
        for shape in SHAPES:
            for scale, offset in ((1, 0), (0.05, 1), (30, -5)):
                block = filled(make(Bend(shape[-1]), shape[-1]))
                x = tokens(shape, scale, offset)
                close(block(x.clone()), formula(block, x, rms))

    def check_layer_norm(make):
        block, x = filled(make(Bend(7), 7, nn.LayerNorm)), tokens((2, 7), 1, 2)
        assert {type(m) for m in block.children()} == {Bend, nn.LayerNorm}
        close(block(x.clone()), formula(block, x, layer))

    def check_gradients(make):
        block, x = filled(make(Bend(7), 7)), tokens((2, 3, 7)).requires_grad_()
        upstream = tokens((2, 3, 7), seed=9)
        inputs = [x, *block.parameters()]
        wanted = torch.autograd.grad(formula(block, x, rms), inputs, upstream)
        y = block(x)
        assert all(i.requires_grad for i in inputs)
        actual = torch.autograd.grad(y, inputs, upstream, allow_unused=True)
        for a, b in zip(actual, wanted, strict=True):
            assert a is not None
            close(a, b, 1e-7)

    return [
        check_parameters,
        check_input_unchanged,
        check_values,
        check_layer_norm,
        check_gradients,
    ]


def _takes_arguments(make):
    block, x = filled(make(Bend(5), 5)), tokens((3, 5))
    try:
        y = block(x, 0.5, factor=2.0)
    except TypeError:
        pytest.fail("the branch's arguments are not passed on", pytrace=False)
    close(y, sandwich(block, x, rms, 0.5, factor=2.0))


SANDWICH_CHECKS = [
    *checks(sandwich, ("pre", "post")),
    _takes_arguments,
    *of_module(lambda make: filled(make(Bend(7), 7)), tokens((2, 3, 7))),
]
REORDERED_CHECKS = [
    *checks(reordered, ("post",)),
    *of_module(lambda make: filled(make(Bend(7), 7)), tokens((2, 3, 7))),
]


def test_reordered_takes_arguments():
    block, x = filled(ReorderedNorm(Bend(5), 5)), tokens((3, 5))
    close(block(x, 0.5, factor=2.0), reordered(block, x, rms, 0.5, factor=2.0))


test_sandwich_right, test_known_wrong_sandwich = suite(SandwichNorm, SANDWICH_CHECKS)


test_reordered_right, test_known_wrong_reordered = suite(
    ReorderedNorm, REORDERED_CHECKS
)


# Layers of Transformers ------------------------------------------------------

SIZES = {
    "vocab_size": 11,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "pad_token_id": 0,
}
MODELS = {  # layer, config, (names of the norms), what is added to a stored gain
    "gemma2": (
        Gemma2DecoderLayer,
        Gemma2Config,
        ("input", "post_attention", "pre_feedforward", "post_feedforward"),
        1.0,
    ),
    "gemma3": (
        Gemma3DecoderLayer,
        Gemma3TextConfig,
        ("input", "post_attention", "pre_feedforward", "post_feedforward"),
        1.0,
    ),
    "glm4": (
        Glm4DecoderLayer,
        Glm4Config,
        ("input", "post_self_attn", "post_attention", "post_mlp"),
        0.0,
    ),
    "olmo2": (
        Olmo2DecoderLayer,
        Olmo2Config,
        (None, "post_attention", None, "post_feedforward"),
        0.0,
    ),
}


class First(nn.Module):
    """The first output of attention."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, x, **options):
        return self.attention(hidden_states=x, **options)[0]


def build(name):
    """A layer of Transformers, and its two blocks with the same weights."""
    layer_class, config_class, norms, offset = MODELS[name]
    sizes = {k: v for k, v in SIZES.items() if (name, k) != ("olmo2", "head_dim")}
    config = config_class(**sizes)
    config._attn_implementation = "eager"
    theirs = layer_class(config, 0)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in theirs.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(0.3 * noise + (1.0 - offset if noise.ndim == 1 else 0.0))
    gains = []
    for norm in norms:
        gain = None
        if norm:
            source = getattr(theirs, f"{norm}_layernorm")
            gain = RMSNorm(16, config.rms_norm_eps)
            gain.gain = nn.Parameter((offset + source.weight).detach().clone())
        gains.append(gain)
    ours = []
    for branch, pre, post in (
        (First(theirs.self_attn), *gains[:2]),
        (theirs.mlp, *gains[2:]),
    ):
        block = (SandwichNorm if pre else ReorderedNorm)(branch, 16)
        block.post = post
        if pre:
            block.pre = pre
        ours.append(block)
    return theirs, ours


@pytest.mark.parametrize("name", MODELS)
def test_equals_transformers(name):
    theirs, (attention, feed_forward) = build(name)
    generator = torch.Generator().manual_seed(3)
    x = (2 * torch.randn(2, 5, 16, generator=generator)).requires_grad_()
    angles = torch.rand(2, 5, 4, generator=generator)
    if name == "glm4":
        angles = angles[..., :2]  # half of each head is rotated
    rotary = angles.cos(), angles.sin()
    wanted = theirs(x, position_embeddings=rotary, attention_mask=None)
    wanted = wanted[0] if isinstance(wanted, tuple) else wanted
    h = attention(x, position_embeddings=rotary, attention_mask=None)
    actual = feed_forward(h)
    close(actual, wanted, 1e-5)
    upstream = torch.randn(2, 5, 16, generator=generator)
    matrices = [p for p in theirs.parameters() if p.ndim == 2]
    blocks = (attention, attention, feed_forward, feed_forward)
    gains, weights = [], []
    for block, side, norm in zip(
        blocks, ("pre", "post") * 2, MODELS[name][2], strict=True
    ):
        if norm:
            gains.append(getattr(block, side).gain)
            weights.append(getattr(theirs, f"{norm}_layernorm").weight)
    ours = torch.autograd.grad(actual, [x, *matrices, *gains], upstream)
    expected = torch.autograd.grad(wanted, [x, *matrices, *weights], upstream)
    for a, b in zip(ours, expected, strict=True):
        close(a, b, 2e-4)


@pytest.mark.parametrize("name", MODELS)
def test_another_placement_is_another_layer(name):
    """The agreement above can fail: norms moved by one place, or left out."""
    _, (attention, _) = build(name)
    x = torch.randn(1, 3, 16, generator=torch.Generator().manual_seed(0))
    angles = torch.zeros(1, 3, 2 if name == "glm4" else 4)
    rotary = angles.cos(), angles.sin()
    options = {"position_embeddings": rotary, "attention_mask": None}
    right = attention(x, **options)
    wrong = x + attention.branch(attention.post(x), **options)
    assert float((right - wrong).abs().detach().max()) > 0.1
