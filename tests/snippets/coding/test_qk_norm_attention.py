"""qk_norm_attention against a loop over heads and positions in float64."""

import math

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.qk_norm_attention import qk_norm_attention
from snippets.qk_norm.rope import rotate
from snippets.rms_norm.reference import rms_norm
from tests.snippets.coding.cases import (
    close,
    expect,
    gains,
    gradients,
    has_dtype,
    numbers,
    unchanged,
)

JUDGED = qk_norm_attention


def _inputs(heads, key_heads, width=4, time=5, dtype=torch.float64):
    def projection(n, seed):
        loud = (3.0 ** torch.arange(n)).repeat_interleave(width)
        return (numbers((2, time, n * width), seed=seed) * loud).to(dtype)

    q, k, v = (projection(n, i) for i, n in enumerate((heads, key_heads, key_heads)))
    return q, k, v, 1.5 * gains(width, dtype=dtype), gains(width, seed=1, dtype=dtype)


def _turned(vector, position):
    half = len(vector) // 2
    angles = position * 10_000.0 ** (-torch.arange(half).double() / half)
    pairs = torch.polar(torch.ones_like(angles), angles)
    turned = torch.complex(vector[:half], vector[half:]) * pairs
    return torch.cat((turned.real, turned.imag))


def _normed(vector, gain):
    return gain * vector / (vector.dot(vector) / len(vector) + 1e-6).sqrt()


def _wanted(q, k, v, q_gain, k_gain):
    q, k, v, q_gain, k_gain = (each.double() for each in (q, k, v, q_gain, k_gain))
    width = len(q_gain)
    group = q.shape[-1] // k.shape[-1]
    rows = []
    for b in range(len(q)):
        for t in range(q.shape[1]):
            parts = []
            for i, query in enumerate(q[b, t].split(width)):
                here = slice(i // group * width, (i // group + 1) * width)
                query = _turned(_normed(query, q_gain), t)
                keys = [
                    _turned(_normed(k[b, s, here], k_gain), s) for s in range(t + 1)
                ]
                logits = torch.stack([query.dot(key) for key in keys])
                share = (logits / math.sqrt(width)).softmax(0)
                parts.append(share @ v[b, : t + 1, here])
            rows.append(torch.cat(parts))
    return torch.stack(rows).reshape(q.shape)


def check_heads(attention):
    for heads, key_heads in ((1, 1), (2, 2), (4, 2), (6, 2), (3, 1)):
        given = _inputs(heads, key_heads)
        case = f"{heads} heads, {key_heads} key heads, float64, heads of unequal size"
        with unchanged(case, *given):
            y = attention(*given)
        close("y", y, _wanted(*given), 1e-7, case=case)


def check_causal(attention):
    q, k, v, *both = _inputs(4, 2)
    before = attention(q, k, v, *both)[:, :-1]
    for each in (q, k, v):
        each[:, -1] *= -50
    after = attention(q, k, v, *both)[:, :-1]
    same = bool(torch.equal(before, after))
    expect(same, "the last token changed", "an earlier position moved")


def check_bfloat16(attention):
    given = _inputs(4, 2, dtype=torch.bfloat16)
    y, case = attention(*given), "inputs in bfloat16"
    has_dtype("y", y, torch.bfloat16, case)
    size = float(_wanted(*given).abs().max())
    close("y", y, _wanted(*given), 0.05, atol=0.03 * size, case=case)


def check_gradients(attention):
    given = [each.requires_grad_() for each in _inputs(4, 2)]
    g, case = numbers(given[0].shape, seed=7), "gradients by autograd of all inputs"
    ours = gradients(attention(*given), given, g, case)
    exact = torch.autograd.grad(_wanted(*given), given, g)
    for name, a, b in zip(
        ("q", "k", "v", "q_gain", "k_gain"), ours, exact, strict=True
    ):
        size = float(b.abs().max())
        close(f"gradient of {name}", a, b, 1e-6, atol=1e-6 * size, case=case)


CHECKS = [check_heads, check_causal, check_bfloat16, check_gradients]


def _split(x, width):
    return x.unflatten(-1, (-1, width)).transpose(1, 2)


def _attend(q, k, v, **kinds):
    kinds = {"is_causal": True, "enable_gqa": True} | kinds
    y = F.scaled_dot_product_attention(q, k, v, **kinds)
    return y.transpose(1, 2).flatten(start_dim=2)


def rope_before_the_norm(q, k, v, q_gain, k_gain):
    q, k, v = (_split(each, len(q_gain)) for each in (q, k, v))
    return _attend(rms_norm(rotate(q), q_gain), rms_norm(rotate(k), k_gain), v)


def norm_over_all_heads(q, k, v, q_gain, k_gain):
    width = len(q_gain)
    q = rms_norm(q, q_gain.repeat(q.shape[-1] // width))
    k = rms_norm(k, k_gain.repeat(k.shape[-1] // width))
    q, k, v = (_split(each, width) for each in (q, k, v))
    return _attend(rotate(q), rotate(k), v)


def rope_over_the_heads(q, k, v, q_gain, k_gain):
    q, k, v = (each.unflatten(-1, (-1, len(q_gain))) for each in (q, k, v))
    q, k = rotate(rms_norm(q, q_gain)), rotate(rms_norm(k, k_gain))
    return _attend(*(each.transpose(1, 2) for each in (q, k, v)))


def key_heads_interleaved(q, k, v, q_gain, k_gain):
    q, k, v = (_split(each, len(q_gain)) for each in (q, k, v))
    times = q.shape[1] // k.shape[1]
    q, k = rotate(rms_norm(q, q_gain)), rotate(rms_norm(k, k_gain))
    return _attend(q, k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1))


def values_normed_too(q, k, v, q_gain, k_gain):
    v = rms_norm(v.unflatten(-1, (-1, len(k_gain))), k_gain).flatten(-2)
    return qk_norm_attention(q, k, v, q_gain, k_gain)


def one_gain_for_both(q, k, v, q_gain, k_gain):
    return qk_norm_attention(q, k, v, q_gain, q_gain) + 0 * k_gain.sum()


def scale_left_out(q, k, v, q_gain, k_gain):
    q, k, v = (_split(each, len(q_gain)) for each in (q, k, v))
    q, k = rotate(rms_norm(q, q_gain)), rotate(rms_norm(k, k_gain))
    return _attend(q, k, v, scale=1.0)


def scale_of_the_whole_width(q, k, v, q_gain, k_gain):
    scale = q.shape[-1] ** -0.5
    q, k, v = (_split(each, len(q_gain)) for each in (q, k, v))
    q, k = rotate(rms_norm(q, q_gain)), rotate(rms_norm(k, k_gain))
    return _attend(q, k, v, scale=scale)


def mask_forgotten(q, k, v, q_gain, k_gain):
    q, k, v = (_split(each, len(q_gain)) for each in (q, k, v))
    q, k = rotate(rms_norm(q, q_gain)), rotate(rms_norm(k, k_gain))
    return _attend(q, k, v, is_causal=False)


def heads_not_brought_back(q, k, v, q_gain, k_gain):
    y = qk_norm_attention(q, k, v, q_gain, k_gain)
    width = len(q_gain)
    return y.unflatten(-1, (-1, width)).transpose(1, 2).reshape(y.shape)


def keys_without_a_norm(q, k, v, q_gain, k_gain):
    q, k, v = (_split(each, len(q_gain)) for each in (q, k, v))
    return _attend(rotate(rms_norm(q, q_gain)), rotate(k * k_gain), v)


VARIANTS = [
    rope_before_the_norm,
    norm_over_all_heads,
    rope_over_the_heads,
    key_heads_interleaved,
    values_normed_too,
    one_gain_for_both,
    scale_left_out,
    scale_of_the_whole_width,
    mask_forgotten,
    heads_not_brought_back,
    keys_without_a_norm,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
