"""Attention with QK-Norm: values, gradients, dtypes, public implementations."""

import pytest
import torch
from torch import nn

from snippets.qk_norm.attention import Attention, largest_logit
from snippets.qk_norm.rope import rotate
from snippets.rms_norm.reference import RMSNorm
from tests.same_results import of_module
from tests.snippets.qk_norm.float64 import (
    SHAPES,
    assert_close,
    build,
    inputs,
    reference,
    reference_logits,
    turned,
)
from tests.snippets.qk_norm.wrong_attention import FUNCTIONS
from tests.wrong import suite

FORMS = [(kind, "head") for kind in ("rms", "layer", "free", "l2", None)] + [
    ("rms", "projection"),
    ("rms", "rotated"),
    ("free", "rotated"),
]


def check_values_and_gradients(cls, forms=FORMS, shapes=SHAPES):
    for shape in shapes:
        for kind, place in forms:
            attention = build(cls, shape, kind, place)
            x = inputs(shape).requires_grad_()
            before = x.detach().clone()
            wanted = [x, *attention.parameters()]
            scale = shape[3] ** -0.5
            expected = reference(attention, x, kind, place, scale)
            actual = attention(x)
            assert_close(actual, expected, 1e-9, f"{shape} {kind} {place}")
            grad_y = torch.randn_like(x.detach())
            ours = torch.autograd.grad(
                actual, wanted, grad_y, materialize_grads=True, allow_unused=True
            )
            theirs = torch.autograd.grad(expected, wanted, grad_y)
            size = max(float(g.abs().max()) for g in theirs)
            for a, b in zip(ours, theirs, strict=True):
                what = f"gradient {shape} {kind} {place}"
                assert_close(a, b, 0, what, atol=1e-9 * size)
            assert torch.equal(x, before), "x was modified"


def check_on_heads_first(cls):
    """A part of the above: most variants fail here already."""
    check_values_and_gradients(cls, [("rms", "head")], SHAPES[1:3])


def check_other_places_next(cls):
    forms = [("rms", "projection"), ("rms", "rotated")]
    check_values_and_gradients(cls, forms, SHAPES[1:3])


def check_learned_scale(cls):
    shape = SHAPES[1]
    for kind in ("l2", "rms"):
        scale = nn.Parameter(torch.tensor(3.0).double())
        attention = build(cls, shape, kind, scale=scale)
        x = inputs(shape)
        actual = attention(x)
        expected = reference(attention, x, kind, "head", attention.scale)
        assert_close(actual, expected, 1e-9)
        grad_y = torch.randn_like(x)
        (ours,) = torch.autograd.grad(
            actual, attention.scale, grad_y, materialize_grads=True, allow_unused=True
        )
        (theirs,) = torch.autograd.grad(expected, attention.scale, grad_y)
        assert_close(ours, theirs, 1e-8, "gradient of the scale")


def check_fixed_scale(cls):
    shape = SHAPES[2]
    attention, x = build(cls, shape, "l2", scale=11.0), inputs(shape)
    assert_close(attention(x), reference(attention, x, "l2", "head", 11.0), 1e-9)


def check_logits(cls):
    for shape in SHAPES:
        for kind, place in (
            ("rms", "head"),
            ("rms", "projection"),
            ("free", "rotated"),
        ):
            attention, x = build(cls, shape, kind, place), inputs(shape)
            scale = shape[3] ** -0.5
            expected = reference_logits(attention, x, kind, place, scale)
            assert_close(attention.logits(x), expected, 1e-9, "logits")


def check_no_leak_from_the_future(cls):
    for kind, place in FORMS:
        attention, x = build(cls, SHAPES[2], kind, place), inputs(SHAPES[2])
        louder = x.clone()
        louder[:, -1] *= 10
        gap = (attention(louder) - attention(x))[:, :-1].detach().abs().max()
        assert float(gap) < 1e-12, f"{kind} {place}: the last token moves others"


CHECKS = [
    check_on_heads_first,
    check_other_places_next,
    check_values_and_gradients,
    check_learned_scale,
    check_fixed_scale,
    check_logits,
    check_no_leak_from_the_future,
    *of_module(lambda cls: build(cls, SHAPES[1], "rms"), inputs(SHAPES[1])),
]


test_right, test_known_wrong = suite(
    Attention,
    CHECKS,
    functions=FUNCTIONS,
)


# Dtypes ----------------------------------------------------------------------


@pytest.mark.parametrize("place", ["head", "projection", "rotated"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(dtype, place):
    shape = SHAPES[2]
    attention = build(Attention, shape, "rms", place, dtype=dtype)
    x = inputs(shape, dtype)
    y = attention(x)
    assert y.dtype == dtype
    wide = build(Attention, shape, "rms", place)
    with torch.no_grad():
        for ours, theirs in zip(wide.parameters(), attention.parameters(), strict=True):
            ours.copy_(theirs)
    expected = wide(x.double())
    unit = torch.finfo(dtype).eps
    assert_close(y, expected, 30 * unit)


def test_another_place_is_an_error():
    with pytest.raises(ValueError, match="'after'"):
        Attention(8, 2, norm=RMSNorm, place="after")


def test_huge_and_tiny_weights_make_finite_logits():
    for factor in (1e-3, 1e4):
        attention = Attention(8, 2, norm=RMSNorm)
        with torch.no_grad():
            attention.query.weight *= factor
            attention.key.weight *= factor
        assert attention(torch.randn(1, 5, 8)).isfinite().all()
        assert (
            float(attention.logits(torch.randn(1, 5, 8)).detach().abs().max()) <= 2.0001
        )


# RoPE and the largest logit ---------------------------------------------------


def test_rotate():
    for width in (2, 6, 14):
        x = torch.randn(3, 2, 9, width, dtype=torch.float64)
        expected = torch.stack(
            [
                torch.stack([turned(v, t, 500.0) for t, v in enumerate(rows)])
                for rows in x.flatten(0, 1)
            ]
        ).reshape_as(x)
        assert_close(rotate(x, 500.0), expected, 1e-12)
        assert rotate(x.bfloat16()).dtype == torch.bfloat16


def test_rotate_is_relative():
    q, k = torch.randn(2, 8, dtype=torch.float64)
    many = rotate(q.expand(20, -1)) @ rotate(k.expand(20, -1)).T
    for distance in range(5):
        diagonal = many.diagonal(-distance)
        assert_close(diagonal, diagonal[:1].expand_as(diagonal), 1e-10)


def test_largest_logit():
    logits = torch.randn(3, 2, 5, 5, dtype=torch.float64)
    logits[:, :, 0, 4] = 100  # the future
    expected = [
        max(
            float(logits[b, h, i, j])
            for b in range(3)
            for i in range(5)
            for j in range(i + 1)
        )
        for h in range(2)
    ]
    assert largest_logit(logits).tolist() == expected
    assert float(largest_logit(-logits.abs())[0]) < 0


# Public implementations ---------------------------------------------------------


def rope(x, width, base=10_000.0):
    """cos and sin in the layout of transformers: (1, time, width)."""
    time = torch.arange(x.shape[1], dtype=x.dtype)
    speed = base ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    angle = (time[:, None] * speed).repeat(1, 2)[None]
    return angle.cos(), angle.sin()


def public(model, place):
    """(their attention, ours with the same weights, offset of their gain)."""
    torch.manual_seed(3)
    sizes = {
        "hidden_size": 24,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 1,
        "intermediate_size": 8,
        "vocab_size": 11,
        "rms_norm_eps": 1e-3,
        "attn_implementation": "eager",
    }
    if model == "qwen3":
        from transformers.models.qwen3 import modeling_qwen3 as code

        config = code.Qwen3Config(head_dim=10, **sizes)
        theirs = code.Qwen3Attention(config, 0)
    elif model == "gemma3":
        from transformers.models.gemma3 import modeling_gemma3 as code

        config = code.Gemma3TextConfig(head_dim=10, query_pre_attn_scalar=10, **sizes)
        theirs = code.Gemma3Attention(config, 0)
    elif model == "nanochat":
        from transformers.models.nanochat import modeling_nanochat as code

        config = code.NanoChatConfig(head_dim=10, **sizes)
        theirs = code.NanoChatAttention(config, 0)
    elif model == "hunyuan":
        from transformers.models.hunyuan_v1_dense import (
            modeling_hunyuan_v1_dense as code,
        )

        config = code.HunYuanDenseV1Config(head_dim=10, **sizes)
        theirs = code.HunYuanDenseV1Attention(config, 0)
        theirs.q_norm, theirs.k_norm = theirs.query_layernorm, theirs.key_layernorm
    else:
        from transformers.models.olmo2 import modeling_olmo2 as code

        config = code.Olmo2Config(head_dim=10, **sizes)
        theirs = code.Olmo2Attention(config, 0)
    theirs.double()
    kind = "free" if model == "nanochat" else "rms"
    ours = build(Attention, (24, 4, 2, 10, 2, 7), kind, place)
    pairs = {
        "q_proj": ours.query,
        "k_proj": ours.key,
        "v_proj": ours.value,
        "o_proj": ours.output,
    }
    with torch.no_grad():
        for name, layer in pairs.items():
            getattr(theirs, name).weight.copy_(layer.weight)
        if kind == "free":
            return theirs, ours
        offset = 1.0 if model == "gemma3" else 0.0
        theirs.q_norm.weight.copy_(ours.query_norm.gain - offset)
        theirs.k_norm.weight.copy_(ours.key_norm.gain - offset)
    return theirs, ours


@pytest.mark.parametrize(
    ("model", "place", "unit"),
    [
        ("qwen3", "head", 1e-5),
        ("gemma3", "head", 1e-5),
        ("olmo2", "projection", 1e-5),
        ("nanochat", "rotated", 1e-5),
        ("hunyuan", "rotated", 1e-5),
    ],
)
def test_equals_transformers(model, place, unit):
    """float64 weights; their norms compute in float32, hence the tolerance."""
    theirs, ours = public(model, place)
    x = inputs((24, 4, 2, 10, 2, 7)).requires_grad_()
    mask = torch.full((7, 7), -torch.inf, dtype=x.dtype).triu(1)[None, None]
    cos, sin = rope(x, 10)
    if model == "nanochat":  # it turns the other way
        sin = -sin
    expected = theirs(x, (cos, sin), mask)[0]
    actual = ours(x)
    assert_close(actual, expected, unit, model)
    grad_y = torch.randn_like(x)
    layers = (
        (ours.query, theirs.q_proj),
        (ours.key, theirs.k_proj),
        (ours.value, theirs.v_proj),
        (ours.output, theirs.o_proj),
    )
    mine = [x, *(a.weight for a, _ in layers)]
    them = [x, *(b.weight for _, b in layers)]
    if model != "nanochat":  # it has no gain
        mine += [ours.query_norm.gain, ours.key_norm.gain]
        them += [theirs.q_norm.weight, theirs.k_norm.weight]
    for a, b in zip(
        torch.autograd.grad(actual, mine, grad_y),
        torch.autograd.grad(expected, them, grad_y),
        strict=True,
    ):
        assert_close(a, b, 10 * unit, f"{model} gradient")


@pytest.mark.parametrize(
    ("model", "place"), [("qwen3", "projection"), ("qwen3", "rotated")]
)
def test_another_place_is_another_model(model, place):
    theirs, _ = public(model, "head")
    ours = build(Attention, (24, 4, 2, 10, 2, 7), "rms", place)
    x = inputs((24, 4, 2, 10, 2, 7))
    with torch.no_grad():
        if place == "rotated":
            ours.query_norm.gain.copy_(theirs.q_norm.weight)
            ours.key_norm.gain.copy_(theirs.k_norm.weight)
    mask = torch.full((7, 7), -torch.inf, dtype=x.dtype).triu(1)[None, None]
    gap = (ours(x) - theirs(x, rope(x, 10), mask)[0]).detach().abs().max()
    assert float(gap) > 0.1


def test_llama4_l2_norm_is_rms_norm_without_gain():
    from transformers.models.llama4.modeling_llama4 import Llama4TextL2Norm

    from snippets.rms_norm.reference import rms_norm

    theirs = Llama4TextL2Norm(1e-3)
    x = torch.randn(3, 5, 2, 7, requires_grad=True)
    grad_y = torch.randn_like(x)
    ours, expected = rms_norm(x, eps=1e-3), theirs(x)
    assert_close(ours, expected, 1e-6)
    (a,) = torch.autograd.grad(ours, x, grad_y)
    (b,) = torch.autograd.grad(expected, x, grad_y)
    assert_close(a, b, 1e-6)
    assert abs(float(theirs(100 * x).detach().norm(dim=-1).mean()) - 7**0.5) < 1e-3


def test_gemma_value_norm_has_no_gain():
    from transformers.models.gemma3n.modeling_gemma3n import Gemma3nRMSNorm

    norm = Gemma3nRMSNorm(7, with_scale=False)
    assert not list(norm.parameters())
