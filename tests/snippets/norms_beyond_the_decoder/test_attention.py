"""Gates and sinks of attention."""

from types import SimpleNamespace

import pytest
import torch
from transformers import Qwen3NextConfig
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention

from snippets.norms_beyond_the_decoder.attention import (
    causal_logits,
    gated_attention,
    sink_attention,
)
from tests.same_results import on_views
from tests.snippets.norms_beyond_the_decoder.float64 import (
    DTYPES,
    assert_close,
    attention,
    draw,
    same_gradients,
)
from tests.wrong import suite

SHAPES = ((1, 1, 3), (2, 5, 4), (3, 2, 7, 5))  # (..., heads, time, d)


def drawn(shape, dtype=torch.float64):
    return (draw(*shape, seed=i, scale=1.5, dtype=dtype) for i in range(3))


def check_gate(function):
    for shape in SHAPES:
        q, k, v = drawn(shape)
        for width in (shape[-1], 1):
            gate = draw(*shape[:-1], width, seed=3)
            expected = attention(q, k, v) / (1 + torch.exp(-gate))
            assert_close(function(q, k, v, gate), expected)


def check_gate_gradients(function):
    q, k, v = drawn((2, 5, 4))
    same_gradients(
        function,
        lambda q, k, v, gate: attention(q, k, v) / (1 + torch.exp(-gate)),
        (q, k, v, draw(2, 5, 4, seed=3)),
    )


def check_gate_low_precision(function):
    for dtype in DTYPES:
        q, k, v = drawn((2, 5, 4), dtype)
        gate = draw(2, 5, 4, seed=3, dtype=dtype)
        y = function(q, k, v, gate)
        assert y.dtype == dtype
        wide = (part.double() for part in (q, k, v))
        expected = attention(*wide) * torch.sigmoid(gate.double())
        assert_close(y, expected, 0, 24 * torch.finfo(dtype).eps)


GATE = [
    check_gate,
    check_gate_gradients,
    check_gate_low_precision,
    on_views(*drawn((2, 5, 4)), draw(2, 5, 4, seed=3)),
]


test_gate, test_gate_known_wrong = suite(gated_attention, GATE)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
def test_qwen3_next_gates_in_front_of_the_output_projection(dtype):
    """Recover attention from gates at zero (one half), then check any gate."""
    config = Qwen3NextConfig(
        hidden_size=24,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        attn_implementation="eager",
    )
    module, seen = Qwen3NextAttention(config, layer_idx=3).to(dtype), {}
    module.o_proj.register_forward_pre_hook(lambda m, args: seen.update(last=args[0]))
    module.q_proj.register_forward_hook(lambda m, args, out: seen.update(gate=out))
    x = draw(2, 5, 24, dtype=dtype)
    angles = draw(1, 5, 2, seed=8, dtype=dtype).repeat(1, 1, 2)
    rope = angles.cos(), angles.sin()
    with torch.no_grad():
        module(x, rope, None)
        gate = seen["gate"].unflatten(-1, (4, 16))[..., 8:].flatten(-2)
        gated = seen["last"]
        module.q_proj.weight.view(4, 16, 24)[:, 8:] = 0
        module(x, rope, None)
    expected = 2 * seen["last"] * torch.sigmoid(gate)
    assert_close(gated, expected, 4 * torch.finfo(dtype).eps, 1e-6)


# Sinks -------------------------------------------------------------------------


def sinks(heads):
    return draw(heads, seed=4, scale=2)


def check_sink(function):
    for shape in SHAPES:
        q, k, v = drawn(shape)
        sink = sinks(shape[-3])
        assert_close(function(q, k, v, sink), attention(q, k, v, sink))


def check_sink_limits(function):
    q, k, v = drawn((2, 5, 4))
    never = torch.full((2,), -torch.inf, dtype=torch.float64)
    assert_close(function(q, k, v, never), attention(q, k, v))
    always = torch.full((2,), 800.0, dtype=torch.float64)
    assert_close(function(q, k, v, always), torch.zeros_like(v))
    far = function(5000 * q, k, v, sinks(2))
    assert bool(far.isfinite().all()), "overflow with large logits"


def check_sink_gradients(function):
    q, k, v = drawn((2, 5, 4))
    same_gradients(function, attention, (q, k, v, sinks(2)))


def check_sink_low_precision(function):
    for dtype in DTYPES:
        q, k, v = drawn((2, 5, 4), dtype)
        sink = sinks(2).to(dtype)
        y = function(q, k, v, sink)
        assert y.dtype == dtype
        expected = attention(*(part.double() for part in (q, k, v)), sink.double())
        assert_close(y, expected, 0, 32 * torch.finfo(dtype).eps)


SINK = [
    check_sink,
    check_sink_limits,
    check_sink_gradients,
    check_sink_low_precision,
    on_views(*drawn((2, 5, 4)), sinks(2)),
]


test_sink, test_sink_known_wrong = suite(sink_attention, SINK)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gpt_oss(dtype):
    q, k, v = drawn((2, 4, 6, 8), dtype)
    module = SimpleNamespace(
        num_key_value_groups=1, sinks=sinks(4).to(dtype), training=False
    )
    future = torch.full((6, 6), torch.finfo(dtype).min, dtype=dtype).triu(1)
    theirs, weights = modeling_gpt_oss.eager_attention_forward(
        module, q, k, v, future, scaling=8**-0.5
    )
    ours = sink_attention(q, k, v, module.sinks)
    assert_close(theirs.transpose(1, 2), ours, 0, 24 * torch.finfo(dtype).eps)
    assert bool((weights.float().sum(-1) < 1).all())


# What the page says ------------------------------------------------------------


def test_a_sink_is_a_gate_that_reads_the_size_of_the_logits():
    q, k, v = drawn((3, 7, 5))
    total = causal_logits(q, k).logsumexp(-1, keepdim=True)
    for level in (-3.0, 0.0, 4.0):
        sink = torch.full((3,), level, dtype=torch.float64)
        gate = total - level
        assert_close(sink_attention(q, k, v, sink), gated_attention(q, k, v, gate))


def test_without_gate_or_sink_the_weights_of_a_query_sum_to_one():
    q, k, v = drawn((3, 7, 5))
    ones = torch.ones_like(v)
    open_gate = torch.full_like(v, 1e3)
    assert_close(gated_attention(q, k, ones, open_gate), ones)
    assert bool((sink_attention(q, k, ones, sinks(3)) < 1).all())
