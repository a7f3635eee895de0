"""Attention with capped logits, Gemma 2's attention and its final logits."""

import math

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from snippets.soft_capping.attention import capped_attention
from snippets.soft_capping.reference import soft_cap
from tests.same_results import on_views
from tests.wrong import suite

SHAPES = ((1, 1, 1, 1, 2), (2, 3, 3, 5, 7), (2, 4, 2, 6, 8), (1, 6, 2, 31, 4))
CAP, SCALE = 5.0, 0.7  # scale is not 1 / sqrt(width)


def heads(shape, size=3.0, dtype=torch.float64, seed=0):
    batch, q_heads, k_heads, time, width = shape
    generator = torch.Generator().manual_seed(seed)
    sizes = (q_heads, size), (k_heads, size), (k_heads, 1.0)
    return [
        (
            scale
            * torch.randn(
                batch, n, time, width, generator=generator, dtype=torch.float64
            )
        ).to(dtype)
        for n, scale in sizes
    ]


def reference(q, k, v, cap, scale):
    """One query at a time, with e^x for tanh."""
    group = q.shape[1] // k.shape[1]
    out = torch.zeros_like(q)
    for head in range(q.shape[1]):
        for t in range(q.shape[2]):
            keys = k[:, head // group, : t + 1]
            z = (keys * q[:, head, t, None]).sum(-1) * scale
            if cap is not None:
                e = torch.exp(2 * z / cap)
                z = cap * (e - 1) / (e + 1)
            p = torch.exp(z - z.amax(-1, keepdim=True).detach())
            p = p / p.sum(-1, keepdim=True)
            out[:, head, t] = (p[..., None] * v[:, head // group, : t + 1]).sum(1)
    return out


def close(actual, expected, limit, what="value"):
    assert actual.shape == expected.shape, f"{what}: {actual.shape}"
    gap = (actual.detach().double() - expected.detach().double()).abs().max()
    size = max(1.0, float(expected.detach().double().abs().max()))
    assert float(gap) <= limit * size, f"{what}: off by {gap:.3g}"


def check_values_and_gradients(attention):
    for shape in SHAPES:
        for cap in (CAP, None):
            inputs = [each.requires_grad_() for each in heads(shape)]
            copies = [each.detach().clone() for each in inputs]
            expected = reference(*inputs, cap, SCALE)
            actual = attention(*inputs, cap, SCALE)
            close(actual, expected, 1e-10, f"{shape} cap {cap}")
            grad_y = torch.randn_like(expected.detach())
            pairs = zip(
                torch.autograd.grad(
                    actual, inputs, grad_y, materialize_grads=True, allow_unused=True
                ),
                torch.autograd.grad(expected, inputs, grad_y),
                strict=True,
            )
            for ours, theirs in pairs:
                close(ours, theirs, 1e-8, f"gradient {shape} cap {cap}")
            for one, two in zip(inputs, copies, strict=True):
                assert torch.equal(one, two), "an input was modified"


def check_no_leak(attention):
    """Also where every visible logit is far below minus the cap."""
    q, k, v = heads((1, 2, 2, 6, 4))
    k = -10 * q + 0.1 * k
    louder = v.clone()
    louder[:, :, -1] *= 1e6
    gap = (attention(q, k, louder, CAP, 1.0) - attention(q, k, v, CAP, 1.0))[:, :, :-1]
    assert float(gap.abs().max()) == 0, "the last token moves others"


def check_low_precision(attention):
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        q, k, v = heads((2, 2, 1, 9, 8), 8.0, dtype)
        y = attention(q, k, v, 50.0, 8**-0.5)
        assert y.dtype == dtype
        expected = reference(q.double(), k.double(), v.double(), 50.0, 8**-0.5)
        # One rounding of a logit of 50 moves its weight by 50 times as much.
        roundings = 50 if dtype == torch.float32 else 6
        close(y, expected, roundings * torch.finfo(dtype).eps)


def check_float16_does_not_overflow(attention):
    q = torch.full((1, 1, 2, 64), 50.0, dtype=torch.float16)
    k = torch.tensor([60.0, 40.0], dtype=torch.float16)  # q . k above 65504
    k = k[None, None, :, None].expand(1, 1, 2, 64)
    v = torch.tensor([1.0, 3.0], dtype=torch.float16)
    v = v[None, None, :, None].expand(1, 1, 2, 64).contiguous()
    y = attention(q, k, v, 50.0, 1 / 8192)
    expected = reference(q.double(), k.double(), v.double(), 50.0, 1 / 8192)
    assert y.isfinite().all()
    close(y, expected, 2e-3)


CHECKS = [
    check_values_and_gradients,
    check_no_leak,
    check_low_precision,
    check_float16_does_not_overflow,
    on_views(*heads(SHAPES[1]), CAP, SCALE),
]


test_right, test_known_wrong = suite(capped_attention, CHECKS)


# Public implementations -------------------------------------------------------


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
def test_equals_flex_attention(shape):
    q, k, v = heads(shape)

    def score_mod(score, batch, head, query, key):
        return torch.where(query >= key, CAP * torch.tanh(score / CAP), -torch.inf)

    theirs = flex_attention(q, k, v, score_mod=score_mod, scale=SCALE, enable_gqa=True)
    close(capped_attention(q, k, v, CAP, SCALE), theirs, 1e-6)


def gemma(**options):
    from transformers import Gemma2Config

    return Gemma2Config(
        hidden_size=24,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=10,
        num_hidden_layers=2,
        intermediate_size=16,
        vocab_size=13,
        query_pre_attn_scalar=3,
        pad_token_id=0,
        attn_implementation="eager",
        **options,
    )


@pytest.mark.parametrize("cap", [0.5, 50.0, None])
def test_equals_gemma2_attention(cap):
    from transformers.models.gemma2.modeling_gemma2 import Gemma2Attention

    torch.manual_seed(0)
    config = gemma(attn_logit_softcapping=cap)
    theirs = Gemma2Attention(config, 1).double()
    x = 3 * torch.randn(2, 7, 24, dtype=torch.float64)
    x.requires_grad_()
    none = torch.ones(1, 7, 10).double(), torch.zeros(1, 7, 10).double()  # no turn
    mask = torch.full((7, 7), -torch.inf, dtype=x.dtype).triu(1)[None, None]
    expected = theirs(x, none, mask)[0]

    def ours(x):
        q, k, v = (
            layer(x).unflatten(-1, (-1, 10)).transpose(1, 2)
            for layer in (theirs.q_proj, theirs.k_proj, theirs.v_proj)
        )
        y = capped_attention(q, k, v, cap, 3**-0.5)
        return theirs.o_proj(y.transpose(1, 2).flatten(2))

    actual = ours(x)
    close(actual, expected, 1e-6)  # their softmax is float32
    grad_y = torch.randn_like(x)
    wanted = [x, *theirs.parameters()]
    pairs = zip(
        torch.autograd.grad(actual, wanted, grad_y),
        torch.autograd.grad(expected, wanted, grad_y),
        strict=True,
    )
    for a, b in pairs:
        close(a, b, 1e-5, "gradient")
    if cap == 0.5:  # the cap is felt
        theirs.attn_logit_softcapping = None
        gap = (theirs(x, none, mask)[0] - expected).detach().abs().max()
        assert float(gap) > 1e-2


@pytest.mark.parametrize("cap", [0.2, 30.0])
def test_equals_gemma2_final_logits(cap):
    from transformers import Gemma2ForCausalLM

    torch.manual_seed(0)
    model = Gemma2ForCausalLM(gemma(final_logit_softcapping=cap)).double()
    text = torch.randint(1, 13, (2, 6))
    theirs = model(text, labels=text)
    hidden = model.model(text).last_hidden_state
    ours = soft_cap(model.lm_head(hidden), cap)
    close(ours, theirs.logits, 1e-10)
    flat = ours[:, :-1].flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(flat, text[:, 1:].flatten())
    close(loss, theirs.loss, 1e-6, "loss")
    wanted = [model.lm_head.weight, model.model.layers[0].mlp.up_proj.weight]
    pairs = zip(
        torch.autograd.grad(loss, wanted),
        torch.autograd.grad(theirs.loss, wanted),
        strict=True,
    )
    for a, b in pairs:
        close(a, b, 1e-6, "gradient")


def test_sdpa_refuses_the_cap():
    """transformers says so instead of dropping the cap."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    x = torch.zeros(1, 1, 2, 4)
    with pytest.raises(ValueError, match="does not support `softcap`"):
        sdpa_attention_forward(torch.nn.Identity(), x, x, x, None, softcap=50.0)


# Claims of the page --------------------------------------------------------------


def test_the_ratio_of_two_weights_is_bounded():
    z = 1e3 * torch.randn(20, 50, dtype=torch.float64)
    p = soft_cap(z, 3.0).softmax(-1)
    assert float((p.amax(-1) / p.amin(-1)).max()) <= math.exp(6) * (1 + 1e-9)


def test_log_z_is_bounded():
    z = 1e3 * torch.randn(20, 50, dtype=torch.float64)
    log_z = soft_cap(z, 15.0).logsumexp(-1)
    assert float(log_z.abs().max()) <= 15 + math.log(50)


def test_the_cap_is_not_invariant_to_a_shift():
    z = 10 * torch.randn(5, 20, dtype=torch.float64)
    close((z + 40).softmax(-1), z.softmax(-1), 1e-10)
    moved = soft_cap(z + 40, 30.0).softmax(-1) - soft_cap(z, 30.0).softmax(-1)
    assert float(moved.abs().max()) > 0.1
