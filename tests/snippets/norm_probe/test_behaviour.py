"""A norm is what it does: names, attributes and initial values are not asked."""

import pytest
import torch
from torch import nn

from snippets.norm_probe.behaviour import (
    Behaviour,
    expected,
    recognise,
    shortest,
)
from tests.snippets.norm_probe import norms
from tests.snippets.norm_probe.wrong_behaviour import other_rows_not_watched
from tests.wrong import suite

D = 32
X = torch.zeros(2, 7, D)


def told(recognise, norm) -> Behaviour:
    found = recognise(norm, X)
    assert found is not None, f"{norm} is not recognised"
    return found


def check_kind(recognise):
    for norm, kind in (
        (norms.Llama(D), "RMSNorm"),
        (norms.RMSNormInName(D), "LayerNorm"),
        (nn.LayerNorm(D, elementwise_affine=False), "LayerNorm"),
        (norms.Unit(), "L2"),
        (nn.RMSNorm(D, eps=1e-5), "RMSNorm"),
    ):
        assert told(recognise, norm).kind == kind


def check_no_norm(recognise):
    for other in (nn.Identity(), nn.Tanh(), nn.Softmax(-1), nn.Linear(D, D)):
        assert recognise(other, X) is None
    assert recognise(norms.Batch(), X) is None


def check_gain(recognise):
    for norm, gain in (
        (norms.Llama(D), "w"),
        (norms.Gemma(D), "1+w"),
        (norms.GemmaStartedAtOne(D), "1+w"),
        (norms.RootCast(D), "none"),
        (nn.LayerNorm(D, elementwise_affine=False), "none"),
    ):
        assert told(recognise, norm).gain == gain


def check_bias(recognise):
    assert told(recognise, nn.LayerNorm(D)).bias is True
    assert told(recognise, nn.LayerNorm(D, bias=False)).bias is False
    assert told(recognise, norms.ShiftNamedGain(D)).bias is True
    assert told(recognise, norms.Gemma(D)).bias is False


def check_bias_without_name(recognise):
    class Moved(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = nn.Parameter(torch.zeros(D))

        def forward(self, x):
            return nn.functional.rms_norm(x, (D,), None, 1e-6) + self.shift

    assert told(recognise, Moved()).bias is True


def check_eps(recognise):
    for eps in (1e-12, 1e-8, 1.5625e-7, 1e-6, 1e-5, 1e-3):
        assert told(recognise, norms.Llama(D, eps)).eps == eps
        assert told(recognise, nn.LayerNorm(D, eps=eps)).eps == eps
        assert told(recognise, norms.Unit(D, eps)).eps == eps
    assert told(recognise, norms.Lying(D, 1e-6)).eps == 1e-6
    assert told(recognise, norms.EpsOutside(eps=1e-5)).eps is None


def check_size(recognise):
    assert told(recognise, norms.Groups(D)).size == 8
    assert told(recognise, norms.Groups(D)).kind == "RMSNorm"
    assert told(recognise, norms.Llama(D)).size == D


def check_cast(recognise):
    for norm, cast, output in (
        (norms.Llama(D), "cast, then gain", "float32"),
        (norms.Gemma(D), "gain in fp32, then cast", "bfloat16"),
        (norms.Naive(D), "in the input's dtype", "float32"),
        (norms.NeverCast(D), "in fp32, not cast back", "float32"),
        (norms.RootCast(D), "root cast, then product", "bfloat16"),
        (norms.Unit(), "in fp32, then cast", "bfloat16"),
        (nn.LayerNorm(D), "gain in fp32, then cast", "bfloat16"),
    ):
        found = told(recognise, norm)
        assert (found.cast, found.output) == (cast, output), norm


def check_fp16(recognise):
    assert told(recognise, norms.Naive(D)).fp16 is False
    for norm in (norms.Llama(D), norms.RootCast(D), nn.LayerNorm(D)):
        assert told(recognise, norm).fp16 is True


CHECKS = [
    check_kind,
    check_no_norm,
    check_gain,
    check_bias,
    check_bias_without_name,
    check_eps,
    check_size,
    check_cast,
    check_fp16,
]


test_right, test_known_wrong = suite(
    recognise, CHECKS, functions=[other_rows_not_watched]
)


@pytest.mark.parametrize("shape", [(2, 1, 8), (1, 2, 31), (3, 5, 4, 24), (22, 96)])
@pytest.mark.parametrize("make", [norms.Llama, norms.Gemma, nn.LayerNorm])
def test_odd_shapes_and_trained_weights(shape, make):
    torch.manual_seed(1)
    norm = make(shape[-1])
    fresh = recognise(norm, torch.zeros(shape))
    for p in norm.parameters():
        nn.init.normal_(p, 1.0, 3.0)
    before = [p.clone() for p in norm.parameters()]
    x = torch.randn(shape)
    kept = x.clone()
    assert recognise(norm, x) == fresh
    assert torch.equal(x, kept)
    assert all(
        torch.equal(a, b) for a, b in zip(norm.parameters(), before, strict=True)
    )


@pytest.mark.parametrize("kind", ["RMSNorm", "LayerNorm", "L2"])
def test_expected_is_the_formula_in_float64(kind):
    x = torch.randn(3, 6, dtype=torch.float64) * 100 + 7
    for row, got in zip(x, expected(x, kind, 6, 1e-3), strict=True):
        h = row - row.mean() if kind == "LayerNorm" else row
        total = sum(float(v) ** 2 for v in h)
        size = (total + 1e-3) ** 0.5 if kind == "L2" else (total / 6 + 1e-3) ** 0.5
        assert torch.allclose(got, h / size, rtol=1e-13)


def test_public_classes():
    pytest.importorskip("transformers")
    from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm
    from transformers.models.llama.modeling_llama import LlamaRMSNorm
    from transformers.models.nemotron.modeling_nemotron import NemotronLayerNorm1P
    from transformers.models.olmo.modeling_olmo import OlmoLayerNorm

    first, last = "cast, then gain", "gain in fp32, then cast"
    none = "in fp32, then cast"
    for norm, *rest in (
        (LlamaRMSNorm(D), "RMSNorm", D, "w", False, 1e-6, first, "float32"),
        (Gemma2RMSNorm(D), "RMSNorm", D, "1+w", False, 1e-6, last, "bfloat16"),
        (NemotronLayerNorm1P(D), "LayerNorm", D, "1+w", True, 1e-5, last, "bfloat16"),
        (OlmoLayerNorm(D), "LayerNorm", D, "none", False, 1e-5, none, "bfloat16"),
    ):
        assert recognise(norm, X) == Behaviour(*rest, True)


def test_shortest():
    assert shortest(0.99999e-6) == 1e-6
    assert shortest(1.56251e-7) == 1.5625e-7
    assert shortest(1.23456e-5) == 1.2346e-5 or shortest(1.23456e-5) == 1.23456e-5
