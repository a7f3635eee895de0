"""Decoder: its placement, against torch's and transformers' layers, and claims."""

import copy
from functools import cache

import pytest
import torch
from torch import nn

from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
from snippets.pre_norm_vs_post_norm.decoder import Decoder, initialize
from snippets.pre_norm_vs_post_norm.gradients import gradient_norms
from snippets.pre_norm_vs_post_norm.probe import probe
from snippets.pre_norm_vs_post_norm.trial import (
    fresh,
    next_token_loss,
    random_text,
    spread,
)
from snippets.rms_norm.reference import RMSNorm
from tests.snippets.pre_norm_vs_post_norm.float64 import close, draw, parts
from tests.wrong import suite, variants

TEXT = torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(0))


def shaken(model, seed=0):
    """The model in float64 with every parameter moved at random."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.double().parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(0.3 * noise.double())
    return model


# Placement -------------------------------------------------------------------


def by_hand(model, x, pre, final_norm):
    """The equations with the model's own parts, two blocks a layer."""
    for block in model.blocks:
        if pre:
            x = x + block.sublayer(block.norm(x))
        else:
            x = block.norm(x + block.sublayer(x))
    return model.head(model.norm(x) if final_norm else x)


def check_equation(build):
    for pre, final_norm in ((True, True), (True, False), (False, False)):
        block = PreNormBlock if pre else PostNormBlock
        model = shaken(build(12, 3, 2, 11, block, nn.LayerNorm, final_norm))
        wanted = by_hand(model, model.embedding(TEXT), pre, final_norm)
        close(model(TEXT), wanted.detach(), 1e-12)


def check_names_and_order(build):
    model = build(8, 2, 2, 11, PreNormBlock, RMSNorm, True)
    log = []
    for module in model.modules():
        if type(module).__name__ in ("RMSNorm", "Attention", "FeedForward"):
            module.register_forward_hook(
                lambda module, *_: log.append(type(module).__name__)
            )
    model(TEXT)
    layer = ["RMSNorm", "Attention", "RMSNorm", "FeedForward"]
    assert log == 2 * layer + ["RMSNorm"], log


def check_norms_are_their_own(build):
    model = build(8, 3, 2, 11, PreNormBlock, RMSNorm, True)
    norms = {id(m) for m in model.modules() if isinstance(m, RMSNorm)}
    assert len(norms) == 7, f"{len(norms)} norms, not two a layer and a final one"


def check_causal(build):
    for block in (PreNormBlock, PostNormBlock):
        model = shaken(build(12, 2, 2, 11, block, RMSNorm, block is PreNormBlock))
        other = TEXT.clone()
        other[:, -1] = (other[:, -1] + 1) % 11
        close(model(other)[:, :-1], model(TEXT)[:, :-1].detach(), 1e-12)
        assert not torch.equal(model(other)[:, -1], model(TEXT)[:, -1])


CHECKS = [
    check_equation,
    check_names_and_order,
    check_norms_are_their_own,
    check_causal,
]


test_right, test_known_wrong = suite(Decoder, CHECKS)


# Public implementations ------------------------------------------------------


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (2, 5)], ids=str)
def test_equals_torch_encoder(norm_first, shape):
    """A whole stack with biases and its final norm, forward and backward."""
    d, heads, layers = 12, 3, 3
    layer = nn.TransformerEncoderLayer(
        d, heads, 4 * d, 0.0, "gelu", batch_first=True, norm_first=norm_first
    )
    theirs = nn.TransformerEncoder(
        layer,
        layers,
        norm=nn.LayerNorm(d) if norm_first else None,
        enable_nested_tensor=False,
    )
    theirs = shaken(theirs)
    block = PreNormBlock if norm_first else PostNormBlock
    ours = Decoder(d, layers, heads, 5, block, nn.LayerNorm, norm_first).double()
    pairs = []
    with torch.no_grad():
        for i, layer in enumerate(theirs.layers):
            attention, feed_forward = ours.blocks[2 * i : 2 * i + 2]
            modules = [
                (attention.norm, layer.norm1),
                (feed_forward.norm, layer.norm2),
                (attention.sublayer.writer, layer.self_attn.out_proj),
                (feed_forward.sublayer.reader, layer.linear1),
                (feed_forward.sublayer.writer, layer.linear2),
            ]
            for mine, other in modules:
                pairs += [(mine.weight, other.weight), (mine.bias, other.bias)]
            reader = attention.sublayer.reader
            pairs.append((reader.weight, layer.self_attn.in_proj_weight))
            pairs.append((reader.bias, layer.self_attn.in_proj_bias))
        if norm_first:
            pairs.append((ours.norm.weight, theirs.norm.weight))
            pairs.append((ours.norm.bias, theirs.norm.bias))
        for mine, other in pairs:
            mine.copy_(other)
    x = draw((*shape, d)).requires_grad_()
    mask = nn.Transformer.generate_square_subsequent_mask(shape[1]).double()
    expected = theirs(x, mask=mask, is_causal=True)
    actual = ours.norm(nn.Sequential(*ours.blocks)(x))
    close(actual, expected.detach(), 1e-10)
    grad_y = draw((*shape, d), seed=1)
    mine, other = zip(*pairs, strict=True)
    slopes = torch.autograd.grad(actual, (x, *mine), grad_y)
    wanted = torch.autograd.grad(expected, (x, *other), grad_y)
    largest = max(float(each.abs().max()) for each in wanted)
    for a, b in zip(slopes, wanted, strict=True):
        assert float((a - b).abs().max()) <= 1e-10 * largest


def test_llama_is_pre_norm():
    """post_attention_layernorm stands before the feed-forward, in the branch."""
    from transformers import LlamaConfig
    from transformers.models.llama import modeling_llama as llama

    config = LlamaConfig(
        hidden_size=16,
        intermediate_size=24,
        num_attention_heads=2,
        num_key_value_heads=2,
        attn_implementation="eager",
    )
    layer = shaken(llama.LlamaDecoderLayer(config, 0))
    x = draw((2, 5, 16)).requires_grad_()
    place = torch.arange(5)[None]
    rotary = llama.LlamaRotaryEmbedding(config)(x, place)

    class Attention(nn.Module):
        def forward(self, x):
            return layer.self_attn(x, position_embeddings=rotary, attention_mask=None)[
                0
            ]

    ours = nn.Sequential(
        PreNormBlock(Attention(), layer.input_layernorm),
        PreNormBlock(layer.mlp, layer.post_attention_layernorm),
    )
    outputs = ours(x), layer(x, position_embeddings=rotary, attention_mask=None)
    close(outputs[0], outputs[1].detach(), 1e-6)  # its norm computes in float32
    slopes = [torch.autograd.grad(y.sum(), x)[0] for y in outputs]
    close(*slopes, 1e-6)


def test_bert_is_post_norm():
    from transformers import BertConfig
    from transformers.models.bert import modeling_bert as bert

    config = BertConfig(
        hidden_size=16,
        intermediate_size=24,
        num_attention_heads=2,
        attn_implementation="eager",
    )
    layer = shaken(bert.BertLayer(config)).eval()
    x = draw((2, 5, 16)).requires_grad_()

    class Attention(nn.Module):
        def forward(self, x):
            return layer.attention.output.dense(layer.attention.self(x)[0])

    class FeedForward(nn.Module):
        def forward(self, x):
            return layer.output.dense(layer.intermediate(x))

    ours = nn.Sequential(
        PostNormBlock(Attention(), layer.attention.output.LayerNorm),
        PostNormBlock(FeedForward(), layer.output.LayerNorm),
    )
    theirs = layer(x)
    theirs = theirs[0] if isinstance(theirs, tuple) else theirs
    close(ours(x), theirs.detach(), 1e-10)
    slopes = [torch.autograd.grad(y.sum(), x)[0] for y in (ours(x), theirs)]
    close(*slopes, 1e-7)


# What the page says ----------------------------------------------------------


def test_probe_tells_every_block_apart():
    """With LayerNorm too, whose bias a silent sublayer would let through."""
    wrong = (*variants(PreNormBlock), *variants(PostNormBlock))
    blocks = {block.__name__: block.make() for block in wrong}
    builds = {
        "norm_on_the_stream": ("x", "norm(x + f)"),
        "norm_inside_the_branch": ("norm(x)", "x + f"),
        "residual_after_the_norm": ("norm(x)", "norm(x) + f"),
        "norm_of_the_branch_only": ("x", "x + norm(f)"),
        "sandwich": ("norm(x)", "x + norm(f)"),
        "residual_inside_the_sublayer": ("else", "f"),
        "residual_forgotten_after_norm": ("norm(x)", "f"),
        "norm_forgotten": ("x", "x + f"),
        "norm_before_and_after": ("norm(x)", "norm(x + f)"),
        "norm_twice": ("x", "else"),
        "branch_subtracted": ("norm(x)", "else"),
    }
    x, f = draw((3, 8)), draw((3, 8), seed=1)
    for kind in ("rms", "layer"):
        _, norm = parts(8, kind)
        for name, wanted in builds.items():
            assert probe(blocks[name], norm, x, f) == wanted, name


def test_pre_norm_unrolls_into_a_sum():
    model = fresh("Pre-Norm with final norm", 3, 0)
    x = model.embedding(random_text(0))
    total, stream = x, x
    for block in model.blocks:
        total = total + block.sublayer(block.norm(stream))
        stream = block(stream)
    close(total, stream.detach(), 1e-12)


def test_initialize():
    model = initialize(Decoder(64, 2, 2, 64), 0)
    again = initialize(copy.deepcopy(model), 0)
    for one, two in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, two)
    other = initialize(copy.deepcopy(model), 1)
    assert not torch.equal(other.embedding.weight, model.embedding.weight)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            assert abs(module.weight.std().item() * module.in_features**0.5 - 1) < 0.1
            assert module.bias is None or not module.bias.any()
    assert abs(model.embedding.weight.std().item() - 1) < 0.1


@cache
def runs(placement, layers):
    """Gradient norms by layer, for seeds that are not the page's."""
    return [
        gradient_norms(fresh(placement, layers, s), random_text(s))
        for s in range(10, 15)
    ]


def fall(placement, layer):
    """The median at 4 layers over the median at 36, a ninefold depth."""
    four, many = (
        sorted(run[layer] for run in runs(placement, layers))[2] for layers in (4, 36)
    )
    return four / many


def test_last_layer_follows_the_law():
    """Post flat; Pre like 1/√L with a final norm, growing without one."""
    assert 2.3 < fall("Pre-Norm with final norm", -1) < 3.9  # √9 = 3
    assert 0.6 < fall("Post-Norm", -1) < 1.6
    assert fall("Pre-Norm without final norm", -1) < 0.75
    assert fall("Pre-Norm without final norm", 0) < 0.4


def test_first_layer_keeps_its_gradient():
    assert 0.5 < fall("Pre-Norm with final norm", 0) < 2.0


def test_early_layers_have_the_larger_gradients():
    """About 1/√l within one model, with the final norm."""
    found = runs("Pre-Norm with final norm", 36)
    first, last = (sorted(run[i] for run in found)[2] for i in (0, -1))
    assert 3.0 < first / last < 9.0  # √36 = 6


def test_gradient_norms_are_of_the_feed_forward_writers():
    model, text = fresh("Pre-Norm with final norm", 2, 0), random_text(0)
    next_token_loss(model, text).backward()
    expected = [model.blocks[i].sublayer.writer.weight.grad.norm() for i in (1, 3)]
    assert gradient_norms(model, text) == pytest.approx([float(e) for e in expected])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_nn_transformer_normalizes_twice():
    """nn.Transformer ends in a norm, whatever norm_first says."""
    for norm_first in (False, True):
        model = nn.Transformer(8, 2, 1, 1, 16, norm_first=norm_first)
        assert isinstance(model.encoder.norm, nn.LayerNorm)
        assert isinstance(model.decoder.norm, nn.LayerNorm)


def test_spread():
    assert spread([3.0, 1.0, 2.0]) == "2.00 [1.00, 3.00]"
