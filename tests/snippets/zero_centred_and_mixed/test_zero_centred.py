"""ZeroCentredRMSNorm and GatedRMSNorm: float64, the public classes, wrong ones."""

import importlib.util
import re
from pathlib import Path

import pytest
import torch

from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.zero_centred_and_mixed.equilibrium import rest
from snippets.zero_centred_and_mixed.zero_centred import (
    GatedRMSNorm,
    ZeroCentredRMSNorm,
)
from tests.same_results import of_module
from tests.snippets.zero_centred_and_mixed.float64 import (
    DTYPES,
    SHAPES,
    assert_close,
    norm,
    norm_gradients,
    tokens,
)
from tests.wrong import suite


def weights(d, scale=0.6, dtype=torch.float64):
    generator = torch.Generator().manual_seed(100)
    return (scale * torch.randn(d, generator=generator).double() - 0.3).to(dtype)


def filled(kind, d, eps=1e-6, dtype=torch.float64, scale=0.6):
    made = kind(d, eps).to(dtype)
    with torch.no_grad():
        made.weight.copy_(weights(d, scale))
    return made


# Zero-centred ----------------------------------------------------------------


def check_values_and_gradients(kind):
    for shape in SHAPES:
        for offset, scale, eps in ((0, 1, 1e-6), (30, 1, 1e-2), (0, 1e-4, 1e-6)):
            made = filled(kind, shape[-1], eps)
            x = tokens(shape, offset=offset, scale=scale).requires_grad_()
            y, grad_y = made(x), tokens(shape, seed=1)
            gain = 1 + weights(shape[-1])
            assert_close(y, norm(x.detach(), gain, eps), 1e-11)
            actual = torch.autograd.grad(y, (x, made.weight), grad_y)
            expected = norm_gradients(grad_y, x.detach(), gain, eps)
            for a, b in zip(actual, expected, strict=True):
                assert_close(a, b, 1e-8, 1e-8 * float(b.abs().max()) + 1e-9, "gradient")


def check_starts_with_a_gain_of_one(kind):
    made = kind(7)
    assert sum(p.numel() for p in made.parameters()) == 7, "one number per feature"
    x = tokens((3, 7), offset=2.0, dtype=torch.float32)
    assert torch.equal(made(x), rms_norm(x)), "not RMSNorm at the start"


def check_decay_leads_to_a_gain_of_one(kind):
    made = filled(kind, 7)
    with torch.no_grad():
        made.weight.mul_(0.0)  # where decay ends
    x = tokens((3, 7))
    assert_close(made(x), norm(x), 1e-11)


def check_low_precision(kind):
    for dtype in (torch.bfloat16, torch.float16):
        unit = torch.finfo(dtype).eps
        made = kind(33).to(dtype)
        small = torch.arange(1, 34) * unit / 8  # 1 + small needs more bits
        with torch.no_grad():
            made.weight.copy_(small)
        x = tokens((5, 33), dtype=dtype)
        y = made(x)
        assert y.dtype == dtype, y.dtype
        expected = norm(x.double(), 1 + made.weight.detach().double())
        floor = torch.finfo(dtype).smallest_normal * unit
        assert_close(y, expected, 0.505 * unit, floor)


def check_input_unchanged(kind):
    x = tokens((3, 5))
    before = x.clone()
    filled(kind, 5)(x)
    assert torch.equal(x, before), "the input was modified"


CHECKS = [
    check_starts_with_a_gain_of_one,
    check_values_and_gradients,
    check_decay_leads_to_a_gain_of_one,
    check_low_precision,
    check_input_unchanged,
    *of_module(lambda kind: filled(kind, 7), tokens((2, 3, 7))),
]


test_right, test_known_wrong = suite(ZeroCentredRMSNorm, CHECKS)


# The public classes ----------------------------------------------------------


def _agree(ours, theirs, inputs, dtype):
    with torch.no_grad():
        theirs.weight.copy_(ours.weight)
    results = []
    for made in (ours, theirs):
        leaves = [each.clone().requires_grad_() for each in inputs]
        y = made(*leaves)
        grad_y = tokens(y.shape, seed=7, dtype=dtype)
        results.append((y, *torch.autograd.grad(y, (*leaves, made.weight), grad_y)))
    for a, b in zip(*results, strict=True):
        assert a.dtype == b.dtype
        unit = max(torch.finfo(dtype).eps, 2e-7)
        assert_close(a, b, 4 * unit, 4 * unit * float(b.detach().double().abs().max()))
    return results


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize("shape", ((1, 7), (2, 3, 31)), ids=str)
def test_equals_the_class_of_qwen3_next(shape, dtype):
    from transformers.models.qwen3_next import modeling_qwen3_next as public

    ours = filled(ZeroCentredRMSNorm, shape[-1], dtype=dtype)
    theirs = public.Qwen3NextRMSNorm(shape[-1]).to(dtype)
    assert not theirs.weight.any(), "it does not start at zero"
    x = tokens(shape, offset=1.0, dtype=dtype)
    (y, *_), (z, *_) = _agree(ours, theirs, (x,), dtype)
    if dtype != torch.float32:
        assert torch.equal(y, z)


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize("shape", ((1, 7), (2, 3, 31)), ids=str)
def test_equals_the_gated_class_of_qwen3_next(shape, dtype):
    from transformers.models.qwen3_next import modeling_qwen3_next as public

    ours = filled(GatedRMSNorm, shape[-1], dtype=dtype)
    theirs = public.Qwen3NextRMSNormGated(shape[-1]).to(dtype)
    assert bool((theirs.weight == 1).all()), "it does not start at one"
    x, gate = tokens(shape, dtype=dtype), tokens(shape, seed=3, dtype=dtype)
    (y, *_), (z, *_) = _agree(ours, theirs, (x, gate.clamp(-9, 9)), dtype)
    if dtype != torch.float32:
        assert torch.equal(y, z)


def test_gated_in_float64():
    made = filled(GatedRMSNorm, 13)
    x, gate = tokens((2, 4, 13)), tokens((2, 4, 13), seed=3)
    expected = norm(x, weights(13)) * gate / (1 + torch.exp(-gate))
    assert_close(made(x, gate), expected, 1e-11, 1e-14)


SOURCES = Path(importlib.util.find_spec("transformers").origin).parent / "models"
OFFSET = [
    "gemma",
    "gemma2",
    "gemma3",
    "recurrent_gemma",
    "vaultgemma",
    "t5gemma",
    "t5gemma2",
    "qwen3_next",
    "qwen3_5",
    "qwen4_exp",
    "minimax_m3_vl",
    "step3p7",
    "muse_spark",
    "muse_glimmer",
]


@pytest.mark.parametrize("model", OFFSET)
def test_stores_the_gain_minus_one(model):
    source = (SOURCES / model / f"modeling_{model}.py").read_text(encoding="utf-8")
    assert "(1.0 + self.weight" in source


@pytest.mark.parametrize("model", ("nemotron", "videoprism"))
def test_layer_norm_stores_the_gain_minus_one(model):
    source = (SOURCES / model / f"modeling_{model}.py").read_text(encoding="utf-8")
    assert "self.weight + 1.0, self.bias, self.eps" in source


def test_nobody_else_stores_the_gain_minus_one():
    """The table of the page is complete."""
    found = {
        path.parent.name.removesuffix("_moe")
        for path in SOURCES.glob("*/modeling_*.py")
        if re.search(
            r"\b1(\.0)? \+ self\.weight|self\.weight(\.float\(\))? \+ 1",
            path.read_text(encoding="utf-8"),
        )
    }
    assert found == {*OFFSET, "nemotron", "videoprism"}


@pytest.mark.parametrize("model", ("gemma3n", "gemma4"))
def test_stores_the_gain(model):
    source = (SOURCES / model / f"modeling_{model}.py").read_text(encoding="utf-8")
    assert "1.0 + self.weight" not in source


def test_one_class_adds_before_it_widens():
    path = SOURCES / "muse_spark" / "modeling_muse_spark.py"
    assert "(1.0 + self.weight).float()" in path.read_text(encoding="utf-8")
    small = torch.tensor(2.0**-9, dtype=torch.bfloat16)
    assert float((1.0 + small).float()) == 1.0 != float(1.0 + small.float())


# What the page says ----------------------------------------------------------


@pytest.mark.parametrize("wish", (0.5, 1.0, 8.0))
@pytest.mark.parametrize("pull", (0.01, 1.0))
def test_equilibrium(wish, pull):
    share = pull / (pull + 0.1)
    assert abs(rest(RMSNorm(3), wish, pull) - share * wish) < 1e-4
    centred = rest(ZeroCentredRMSNorm(3), wish, pull)
    assert abs(centred - (1 + share * (wish - 1))) < 1e-4
