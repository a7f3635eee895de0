"""qk_norm_attention against a loop over heads and positions in float64."""

import math

import pytest
import torch

from snippets.coding.qk_norm_attention import qk_norm_attention
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    close,
    expect,
    gains,
    gradients,
    has_dtype,
    numbers,
    unchanged,
)
from tests.wrong import rejects

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


check_views = on_views(*_inputs(4, 2))

CHECKS = [check_heads, check_causal, check_bfloat16, check_gradients, check_views]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(qk_norm_attention, CHECKS)
