"""Decoder against an independent float64 decoder: logits and all gradients."""

import pytest
import torch

from snippets.rms_norm.reference import RMSNorm
from snippets.transformer_block.decoder import Attention, Decoder, Sizes, rotate
from tests.snippets.transformer_block import float64
from tests.snippets.transformer_block.float64 import PLAIN, QK, close
from tests.snippets.transformer_block.wrong_decoder import norm_returns_float32
from tests.wrong import suite

FAINT = Sizes(24, 1, 3, 1, 8, 40, 31, eps=1e-3, base=1e4, qk_norm=True)


def filled(implementation, sizes, p):
    """The implementation's model in float64, with the parameters p."""
    model = implementation(sizes).double()
    model.load_state_dict(p, strict=False)
    return model


def check_logits(implementation):
    for sizes in (PLAIN, QK):
        p = float64.parameters(sizes)
        for shape in ((2, 7), (1, 1), (3, 13)):
            ids = float64.tokens(sizes, shape)
            y = filled(implementation, sizes, p)(ids)
            close(y, float64.logits(p, sizes, ids), 1e-11, "logits")


def check_gradients(implementation):
    for sizes in (PLAIN, QK):
        p, ids = float64.parameters(sizes, seed=1), float64.tokens(sizes)
        model = filled(implementation, sizes, p)
        float64.loss(model(ids), ids).backward()
        found = dict(model.named_parameters())
        for name, expected in float64.gradients(p, sizes, ids).items():
            assert name in found, f"no parameter {name}"
            gradient = found[name].grad
            assert gradient is not None, f"{name} has no gradient"
            close(gradient, expected, 1e-10, name)


def check_faint_embedding(implementation):
    """With an embedding near the root of eps, eps is half of the answer."""
    p, ids = float64.parameters(FAINT), float64.tokens(FAINT)
    p["embedding.weight"] *= 0.1
    y = filled(implementation, FAINT, p)(ids)
    close(y, float64.logits(p, FAINT, ids), 1e-11, "logits")


def check_causal(implementation):
    p, ids = float64.parameters(QK), float64.tokens(QK)
    model, other = filled(implementation, QK, p), ids.clone()
    other[:, -1] = (other[:, -1] + 1) % QK.vocabulary
    close(model(other)[:, :-1], model(ids)[:, :-1].detach(), 1e-12, "the past")


def check_dtypes(implementation):
    ids = float64.tokens(QK)
    p = float64.parameters(QK)
    expected = float64.logits(p, QK, ids)
    for dtype, rtol in (
        (torch.float64, 1e-11),
        (torch.float32, 1e-5),
        (torch.bfloat16, 0.1),
        (torch.float16, 0.02),
    ):
        y = filled(implementation, QK, p).to(dtype)(ids)
        assert y.dtype == dtype, f"{dtype} in, {y.dtype} out"
        close(y, expected, rtol, str(dtype))


def check_late_positions(implementation):
    """bfloat16 cannot count beyond 256: the angles need float32."""
    p, ids = float64.parameters(QK), float64.tokens(QK, (1, 600))
    y = filled(implementation, QK, p).to(torch.bfloat16)(ids)
    close(y, float64.logits(p, QK, ids), 0.15, "late positions")


CHECKS = [
    check_logits,
    check_gradients,
    check_faint_embedding,
    check_causal,
    check_dtypes,
    check_late_positions,
]


test_right, test_known_wrong = suite(Decoder, CHECKS, functions=[norm_returns_float32])


# What the page says ----------------------------------------------------------


@pytest.mark.parametrize("blocks", (1, 8))
@pytest.mark.parametrize("qk_norm", (False, True))
def test_number_of_norms(blocks, qk_norm):
    with torch.device("meta"):
        model = Decoder(Sizes(blocks=blocks, qk_norm=qk_norm))
    count = sum(isinstance(module, RMSNorm) for module in model.modules())
    assert count == (4 if qk_norm else 2) * blocks + 1


def test_gains_start_at_one_and_are_not_shared():
    model = Decoder(QK)
    gains = [p for name, p in model.named_parameters() if name.endswith("gain")]
    assert len(gains) == 4 * QK.blocks + 1
    assert all(bool((gain == 1).all()) for gain in gains)


def test_rotation_keeps_lengths_and_depends_on_distance():
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 1, 1, 6, generator=generator, dtype=torch.float64)
    q, k = q.expand(1, 1, 9, 6), k.expand(1, 1, 9, 6)
    a, b = rotate(q, 100.0)[0, 0], rotate(k, 100.0)[0, 0]
    close(a.norm(dim=-1), q[0, 0].norm(dim=-1), 1e-14, "length")
    scores = a @ b.T
    close(scores[3:, 3:], scores[:-3, :-3], 1e-12, "distance")
    close(a[0], q[0, 0, 0], 1e-15, "position zero")


def test_statistic_is_the_same_after_rotation_and_the_gain_is_not():
    p = float64.parameters(QK)
    attention = Attention(QK).double()
    gain = p["blocks.0.attention.q_norm.gain"]
    x = torch.randn(2, 3, 5, QK.width, generator=torch.Generator().manual_seed(1))
    x = x.double()
    norm = attention.q_norm
    close(norm(rotate(x, 10.0)), rotate(norm(x), 10.0).detach(), 1e-12, "no gain")
    norm.gain.data = gain
    gap = norm(rotate(x, 10.0)) - rotate(norm(x), 10.0)
    assert float(gap.detach().abs().max()) > 0.1


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16, torch.float64))
def test_rotate_keeps_dtype_and_input(dtype):
    x = torch.randn(1, 2, 5, 8, dtype=torch.float64).to(dtype)
    before = x.clone()
    assert rotate(x, 1e4).dtype == dtype
    assert torch.equal(x, before)
