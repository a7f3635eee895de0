"""Gates and sinks of attention."""

from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F
from transformers import Qwen3NextConfig
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention

from snippets.norms_beyond_the_decoder.attention import (
    causal_logits,
    gated_attention,
    sink_attention,
)
from tests.snippets.norms_beyond_the_decoder.float64 import (
    DTYPES,
    assert_close,
    attention,
    draw,
    same_gradients,
)

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


GATE = [check_gate, check_gate_gradients, check_gate_low_precision]


def _weights(q, k):
    return causal_logits(q, k).softmax(-1)


def gate_on_the_values(q, k, v, gate):
    return _weights(q, k) @ (torch.sigmoid(gate) * v)


def gate_on_the_queries(q, k, v, gate):
    return _weights(torch.sigmoid(gate) * q, k) @ v


def gate_on_the_keys(q, k, v, gate):
    return _weights(q, torch.sigmoid(gate) * k) @ v


def gate_on_the_weights(q, k, v, gate):
    score = torch.sigmoid(gate).mean(-1, keepdim=True)
    return (score.mT * _weights(q, k)) @ v


def silu_for_sigmoid(q, k, v, gate):
    return F.silu(gate) * (_weights(q, k) @ v)


def bare_gate(q, k, v, gate):
    return gate * (_weights(q, k) @ v)


def gate_added(q, k, v, gate):
    return torch.sigmoid(gate) + _weights(q, k) @ v


def softmax_for_sigmoid(q, k, v, gate):
    return gate.softmax(-1) * (_weights(q, k) @ v)


def shared_by_the_heads(q, k, v, gate):
    return torch.sigmoid(gate).mean(-3, keepdim=True) * (_weights(q, k) @ v)


def never_below_one_half(q, k, v, gate):
    return (0.5 + 0.5 * torch.sigmoid(gate)) * (_weights(q, k) @ v)


def one_plus_gate(q, k, v, gate):
    return (1 + torch.sigmoid(gate)) * (_weights(q, k) @ v)


def gate_detached(q, k, v, gate):
    return torch.sigmoid(gate.detach()) * (_weights(q, k) @ v) + 0 * gate


GATE_WRONG = [
    gate_on_the_values,
    gate_on_the_queries,
    gate_on_the_keys,
    gate_on_the_weights,
    silu_for_sigmoid,
    bare_gate,
    gate_added,
    softmax_for_sigmoid,
    shared_by_the_heads,
    never_below_one_half,
    one_plus_gate,
    gate_detached,
]


@pytest.mark.parametrize("check", GATE, ids=lambda f: f.__name__)
def test_gate(check):
    check(gated_attention)


@pytest.mark.parametrize("variant", GATE_WRONG, ids=lambda v: v.__name__)
def test_gate_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(GATE, variant)


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


SINK = [check_sink, check_sink_limits, check_sink_gradients, check_sink_low_precision]


def _with_sink(logits, sink):
    column = sink[:, None, None].expand(*logits.shape[:-1], 1)
    return torch.cat([logits, column], -1)


def sink_counted_as_a_value(q, k, v, sink):
    """The sink's share goes to the first token."""
    weights = _with_sink(causal_logits(q, k), sink).softmax(-1)
    first = torch.zeros_like(weights[..., :-1])
    first[..., 0] = weights[..., -1]
    return (weights[..., :-1] + first) @ v


def renormalized_after_dropping(q, k, v, sink):
    weights = _with_sink(causal_logits(q, k), sink).softmax(-1)[..., :-1]
    return weights / weights.sum(-1, keepdim=True) @ v


def sink_added_to_every_logit(q, k, v, sink):
    return (causal_logits(q, k) + sink[:, None, None]).softmax(-1) @ v


def sink_not_exponentiated(q, k, v, sink):
    logits = causal_logits(q, k)
    total = logits.exp().sum(-1, keepdim=True) + sink[:, None, None]
    return logits.exp() / total @ v


def off_by_one(q, k, v, sink):
    logits = causal_logits(q, k)
    total = torch.logaddexp(
        logits.logsumexp(-1, keepdim=True), torch.zeros_like(sink)[:, None, None]
    )
    return (logits - total).exp() @ v + 0 * sink[:, None, None]


def sink_scaled_like_a_logit(q, k, v, sink):
    return sink_attention(q, k, v, sink / q.shape[-1] ** 0.5)


def sink_subtracted_from_the_output(q, k, v, sink):
    weights = _weights(q, k)
    return weights @ v - torch.sigmoid(sink)[:, None, None] * v


def sink_without_the_maximum(q, k, v, sink):
    logits = causal_logits(q, k)
    total = logits.exp().sum(-1, keepdim=True) + sink[:, None, None].exp()
    return logits.exp() / total @ v


def one_sink_for_all_heads(q, k, v, sink):
    return sink_attention(q, k, v, sink.mean().expand_as(sink))


def a_sink_that_is_a_gate_of_the_head(q, k, v, sink):
    """Independent of the query: sigmoid of minus the sink."""
    return torch.sigmoid(-sink)[:, None, None] * (_weights(q, k) @ v)


SINK_WRONG = [
    sink_counted_as_a_value,
    renormalized_after_dropping,
    sink_added_to_every_logit,
    sink_not_exponentiated,
    off_by_one,
    sink_scaled_like_a_logit,
    sink_subtracted_from_the_output,
    sink_without_the_maximum,
    one_sink_for_all_heads,
    a_sink_that_is_a_gate_of_the_head,
]


@pytest.mark.parametrize("check", SINK, ids=lambda f: f.__name__)
def test_sink(check):
    check(sink_attention)


@pytest.mark.parametrize("variant", SINK_WRONG, ids=lambda v: v.__name__)
def test_sink_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(SINK, variant)


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
