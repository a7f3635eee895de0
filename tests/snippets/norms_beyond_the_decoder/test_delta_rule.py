"""L2 norms, the delta rule, and RWKV-7's removal key and head norm."""

import pytest
import torch
from torch.nn import functional as F
from transformers.models.kimi_linear import modeling_kimi_linear
from transformers.models.olmo_hybrid import modeling_olmo_hybrid
from transformers.models.qwen3_5 import modeling_qwen3_5
from transformers.models.qwen3_next import modeling_qwen3_next

from snippets.norms_beyond_the_decoder.delta_rule import delta_rule, l2_norm
from snippets.norms_beyond_the_decoder.rwkv7 import head_norm, removal_key
from tests.same_results import on_views
from tests.snippets.norms_beyond_the_decoder.float64 import (
    DTYPES,
    assert_close,
    centred,
    delta,
    draw,
    same_gradients,
    unit,
)
from tests.wrong import suite

SHAPES = ((1,), (2, 7), (1, 3, 5), (2, 3, 1, 13))

# L2 norm -----------------------------------------------------------------------


def check_length(function):
    for shape in SHAPES:
        for scale, eps in ((1, 1e-6), (1e-3, 1e-6), (1e-4, 1e-2), (1e4, 1e-6)):
            x = draw(*shape, scale=scale, offset=0.4 * scale)
            assert_close(function(x, eps=eps), unit(x, eps), 1e-11)


def check_length_default(function):
    x = draw(4, 9, scale=1e-3)
    assert_close(function(x), unit(x), 1e-11)


def check_length_gradients(function):
    for shape in SHAPES[1:]:
        same_gradients(function, unit, (draw(*shape, scale=0.1),))
    zero = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(function(zero).sum(), zero)
    assert bool(slope.isfinite().all()), "no finite gradient at zero"


def check_length_low_precision(function):
    for dtype in DTYPES[1:]:
        for scale in (1.0, 300.0):
            x = draw(5, 64, scale=scale, dtype=dtype)
            y = function(x)
            assert y.dtype == dtype, y.dtype
            unit_of = torch.finfo(dtype).eps
            assert_close(y, unit(x.double()), 0.51 * unit_of, 1e-6)


LENGTH = [
    check_length,
    check_length_default,
    check_length_gradients,
    check_length_low_precision,
    on_views(draw(2, 3, 7)),
]


test_l2_norm, test_l2_norm_known_wrong = suite(l2_norm, LENGTH)


THEIRS = (modeling_qwen3_next, modeling_qwen3_5, modeling_kimi_linear)


@pytest.mark.parametrize(
    "module", (*THEIRS, modeling_olmo_hybrid), ids=lambda m: m.__name__.split(".")[-2]
)
def test_l2_norm_of_transformers(module):
    for scale in (1.0, 1e-3):
        x = draw(3, 5, 16, scale=scale, dtype=torch.float32)
        assert_close(module.l2norm(x), l2_norm(x), 1e-6, 1e-7)


# The delta rule ----------------------------------------------------------------


def draws(shape, d_k, d_v, channels):
    q, k = draw(*shape, d_k), draw(*shape, d_k, seed=1)
    v = draw(*shape, d_v, seed=2)
    beta = torch.sigmoid(draw(*shape, seed=3))
    decay = torch.sigmoid(draw(*shape, channels, seed=4) + 1)
    return q, unit(k), v, beta, decay


def check_against_matrices(function):
    for time, d_k, d_v, channels in ((1, 3, 3, 1), (6, 4, 3, 1), (7, 3, 5, 3)):
        parts = draws((time,), d_k, d_v, channels)
        (y, state), (expected, last) = function(*parts), delta(*parts)
        assert_close(y, expected)
        assert_close(state, last, what="state")


def check_rows_are_independent(function):
    parts = draws((2, 3, 5), 4, 3, 1)
    y, state = function(*parts)
    for i in range(2):
        for j in range(3):
            expected, last = delta(*(part[i, j] for part in parts))
            assert_close(y[i, j], expected)
            assert_close(state[i, j], last, what="state")


def check_delta_gradients(function):
    parts = draws((5,), 3, 4, 3)
    same_gradients(
        lambda *x: torch.cat([t.flatten() for t in function(*x)]),
        lambda *x: torch.cat([t.flatten() for t in delta(*x)]),
        parts,
    )


DELTA = [
    check_against_matrices,
    check_rows_are_independent,
    check_delta_gradients,
    on_views(*draws((2, 5), 3, 4, 3)),
]


test_delta_rule, test_delta_rule_known_wrong = suite(delta_rule, DELTA)


def ours(q, k, v, log_decay, beta):
    """Both norms and the scale, from (batch, time, heads, d)."""
    q, k = l2_norm(q) / q.shape[-1] ** 0.5, l2_norm(k)
    parts = (part.transpose(1, 2) for part in (q, k, v, beta, log_decay))
    q, k, v, beta, log_decay = parts
    if log_decay.dim() == 3:
        log_decay = log_decay[..., None]
    y, state = delta_rule(q, k, v, beta, log_decay.exp())
    return y.transpose(1, 2), state


@pytest.mark.parametrize("form", ("recurrent", "chunk"))
def test_gated_delta_net_of_qwen3_next(form):
    q, k, v = (draw(2, 9, 3, 8, seed=i, dtype=torch.float32) for i in range(3))
    beta = torch.sigmoid(draw(2, 9, 3, seed=3, dtype=torch.float32))
    g = -torch.sigmoid(draw(2, 9, 3, seed=4, dtype=torch.float32))
    rule = getattr(modeling_qwen3_next, f"torch_{form}_gated_delta_rule")
    options = {"use_qk_l2norm_in_kernel": True, "output_final_state": True}
    y, state = rule(q, k, v, g=g, beta=beta, **options)
    expected, last = ours(q, k, v, g, beta)
    assert_close(y, expected, 1e-4, 1e-6)
    assert_close(state, last, 1e-4, 1e-6)


# RWKV-7 ------------------------------------------------------------------------


def check_removal(function):
    for shape, heads in (((2, 12), 3), ((1, 4, 10), 2), ((3, 6), 1)):
        k, scale = draw(*shape), draw(shape[-1], seed=1, offset=0.8)
        parts = (k * scale).reshape(*shape[:-1], heads, -1)
        expected = (parts / (parts * parts).sum(-1, keepdim=True).sqrt()).reshape(shape)
        assert_close(function(k, scale, heads), expected)
        theirs = F.normalize(parts, dim=-1, p=2.0).reshape(shape)
        assert_close(function(1e-4 * k, scale, heads), theirs)


def check_removal_gradients(function):
    def reference(k, scale):
        parts = (k * scale).unflatten(-1, (3, 4))
        return (parts / (parts * parts).sum(-1, keepdim=True).sqrt()).flatten(-2)

    inputs = (draw(2, 12), draw(12, seed=1, offset=0.8))
    same_gradients(lambda k, s: function(k, s, 3), reference, inputs)


def check_removal_zero_and_dtype(function):
    for dtype in DTYPES:
        k = draw(3, 8, dtype=dtype, scale=1e-3)
        k[1] = 0
        y = function(k, torch.ones(8, dtype=dtype), 2)
        assert y.dtype == dtype
        assert torch.equal(y[1], torch.zeros(8, dtype=dtype)), "zero in, zero out"
        lengths = y[0].double().unflatten(-1, (2, 4)).norm(dim=-1)
        assert bool((lengths - 1).abs().max() < 2 * torch.finfo(dtype).eps + 1e-6)


REMOVAL = [
    check_removal,
    check_removal_gradients,
    check_removal_zero_and_dtype,
    on_views(draw(2, 3, 8), draw(8, seed=1), 2),
]


test_removal_key, test_removal_key_known_wrong = suite(removal_key, REMOVAL)


def affine(d):
    return draw(d, seed=5, offset=0.8, scale=0.5), draw(d, seed=6)


def check_head_norm(function):
    for shape, heads, scale in (((4, 12), 3, 1), ((2, 3, 10), 2, 0.01), ((5, 6), 1, 9)):
        y, (gain, bias) = draw(*shape, scale=scale, offset=scale), affine(shape[-1])
        parts = y.reshape(*shape[:-1], heads, -1)
        expected = centred(parts, 64e-5).reshape(shape) * gain + bias
        assert_close(function(y, gain, bias, heads), expected)
        other = centred(parts, 1e-2).reshape(shape) * gain + bias
        assert_close(function(y, gain, bias, heads, 1e-2), other)


def check_head_norm_is_torchs(function):
    gain, bias = affine(12)
    y = draw(7, 12)
    theirs = F.group_norm(y, 3, gain, bias, 64e-5)
    assert_close(function(y, gain, bias, 3), theirs)
    same_gradients(
        lambda *x: function(*x, 3),
        lambda *x: F.group_norm(x[0], 3, *x[1:], 64e-5),
        (y, gain, bias),
    )


def check_head_norm_low_precision(function):
    for dtype in DTYPES[1:]:
        y = draw(5, 24, scale=20, dtype=dtype)
        gain, bias = (part.to(dtype) for part in affine(24))
        out = function(y, gain, bias, 4)
        parts = y.double().unflatten(-1, (4, -1))
        expected = centred(parts, 64e-5).flatten(-2) * gain.double() + bias.double()
        assert out.dtype == dtype
        assert_close(out, expected, 0.51 * torch.finfo(dtype).eps, 1e-5)


HEAD_NORM = [
    check_head_norm,
    check_head_norm_is_torchs,
    check_head_norm_low_precision,
    on_views(draw(2, 3, 8), *affine(8), 2),
]


test_head_norm, test_head_norm_known_wrong = suite(head_norm, HEAD_NORM)


# What the page says ------------------------------------------------------------


@pytest.mark.parametrize(("length", "beta"), ((1.0, 0.3), (1.0, 2.0), (1.6, 0.9)))
def test_eigenvalues_of_one_step(length, beta):
    k = length * unit(draw(6), eps=0.0)
    matrix = torch.eye(6, dtype=torch.float64) - beta * torch.outer(k, k)
    expected = torch.ones(6, dtype=torch.float64)
    expected[0] = 1 - beta * length**2
    assert_close(torch.linalg.eigvalsh(matrix), expected.sort().values)


def test_unit_keys_never_lengthen_what_is_stored():
    """No value written: the state can only shrink, for beta up to 2."""
    generator = torch.Generator().manual_seed(0)
    for beta in (0.3, 1.0, 1.99):
        state = torch.randn(8, 4, generator=generator, dtype=torch.float64)
        for _ in range(50):
            k = unit(torch.randn(8, generator=generator, dtype=torch.float64), eps=0)
            new = state - beta * torch.outer(k, k @ state)
            assert new.norm() <= state.norm() * (1 + 1e-12)
            state = new


def test_the_same_long_key_again_and_again_doubles_the_error():
    key = torch.zeros(40, 3, dtype=torch.float64)
    key[:, 0] = 2.0
    v, ones = torch.ones(40, 1).double(), torch.ones(40, 1).double()
    y, _ = delta_rule(key, key, v, 0.75 * ones[:, 0], ones)
    errors = (y - 1).abs().squeeze(-1)
    assert_close(errors[1:] / errors[:-1], torch.full((39,), 2.0), 1e-6)


def test_rwkv7_transition_stays_within_the_unit_circle():
    generator = torch.Generator().manual_seed(1)
    for _ in range(50):
        k, rate, keep = torch.randn(3, 8, generator=generator, dtype=torch.float64)
        rate, keep = torch.sigmoid(rate), torch.sigmoid(keep)
        unit_key = removal_key(k, torch.ones(8), 1)
        matrix = torch.diag(keep) - torch.outer(unit_key, rate * unit_key)
        assert torch.linalg.eigvals(matrix).abs().max() <= 1
