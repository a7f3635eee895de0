"""Gains and biases that move from one form to another, in float64."""

import pytest
import torch
from torch.nn import functional as F

from snippets.port_a_norm.folding import fold
from snippets.port_a_norm.gains import FORMS, gain_of, weight_of
from snippets.port_a_norm.moving import move
from snippets.port_a_norm.state import ported
from tests.same_results import on_views
from tests.wrong import suite

SIZES = ((1, 2), (3, 5), (7, 31), (64, 17))  # out, d


def random(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def check_what_is_multiplied(of):
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        weight = (0.1 * random(31)).to(dtype)
        assert torch.equal(of(weight, "w").double(), weight.double())
        wide = torch.promote_types(dtype, torch.float32)
        expected = (1 + weight.double()).to(wide)
        assert of(weight, "1+w").dtype == of(weight, "w").dtype == wide
        assert torch.allclose(of(weight, "1+w"), expected, rtol=1e-7, atol=0)


def check_input_is_kept(of):
    weight = random(5).float()
    before = weight.clone()
    of(weight, "1+w").add_(1)
    of(weight, "w")
    assert torch.equal(weight, before)


def check_unknown_form(of):
    with pytest.raises(KeyError):
        of(random(3), "2+w")


def check_inverse(of):
    for form, one in FORMS.items():
        for dtype in (torch.float64, torch.float32):
            gain = (1 + 0.3 * random(31)).to(dtype)
            stored = of(gain, form)
            assert stored.dtype == dtype
            assert torch.allclose(stored + one, gain, rtol=1e-6)
        assert of(random(3).bfloat16(), form).dtype == torch.float32


def check_fold(fold):
    for out, d in SIZES:
        weight, x = random(out, d), random(4, d, seed=1)
        gain, shift = 1 + 0.3 * random(d, seed=2), random(d, seed=3)
        for bias in (None, random(out, seed=4)):
            for moved in (None, shift):
                right = F.linear(
                    x * gain + (0 if moved is None else moved), weight, bias
                )
                folded, new = fold(weight, bias, gain, moved)
                assert torch.allclose(F.linear(x, folded, new), right, rtol=1e-9)


def check_fold_keeps_its_inputs(fold):
    weight, bias, gain, shift = random(3, 5), random(3), random(5), random(5)
    before = [t.clone() for t in (weight, bias, gain, shift)]
    fold(weight, bias, gain, shift)
    for old, now in zip(before, (weight, bias, gain, shift), strict=True):
        assert torch.equal(old, now)


def check_move(move):
    for out, d in SIZES:
        for form in FORMS:
            weight, n, scale = random(d), random(4, d, seed=1), random(d, seed=2) + 3
            readers = [random(out, d, seed=3), random(out + 1, d, seed=4)]
            before = [each.clone() for each in (weight, *readers)]
            new, moved = move(weight, readers, scale, form)
            assert len(moved) == 2
            for old, reader in zip(readers, moved, strict=True):
                right = F.linear(n * gain_of(weight, form), old)
                found = F.linear(n * gain_of(new, form), reader)
                assert torch.allclose(found, right, rtol=1e-9, atol=1e-9)
            kept = zip(before, (weight, *readers), strict=True)
            assert all(torch.equal(old, now) for old, now in kept)
    new, _ = move(random(5), [random(3, 5)], gain_of(random(5), "1+w"), "1+w")
    assert torch.allclose(new, torch.zeros(5).double(), atol=1e-12)  # all in the matrix


THEIRS = {
    "embed.weight": random(9, 4),
    "layers.0.ln.weight": random(4, seed=1),
    "layers.0.post.weight": random(4, seed=2),
    "layers.0.post.bias": random(4, seed=3),
    "layers.0.attn.weight": random(4, 4, seed=4),
    "layers.0.postscript.weight": random(4, seed=5),
}
NAMES = {"ln": "post", "post": "pre"}  # one's new name is the other's old


def check_names(ported):
    found = ported(THEIRS, NAMES, lambda weight: 1 + weight)
    assert found.keys() == {
        *("embed.weight", "layers.0.post.weight", "layers.0.pre.weight"),
        *("layers.0.pre.bias", "layers.0.attn.weight", "layers.0.postscript.weight"),
    }
    assert torch.equal(found["layers.0.post.weight"], 1 + THEIRS["layers.0.ln.weight"])
    assert torch.equal(found["layers.0.pre.weight"], 1 + THEIRS["layers.0.post.weight"])
    for name in ("layers.0.attn.weight", "layers.0.postscript.weight", "embed.weight"):
        assert torch.equal(found[name], THEIRS[name])
    assert torch.equal(found["layers.0.pre.bias"], THEIRS["layers.0.post.bias"])


def check_a_norm_that_is_not_there(ported):
    with pytest.raises(ValueError, match="no norm called missing"):
        ported(THEIRS, NAMES | {"missing": "x"}, lambda weight: weight)


def check_two_of_one_name(ported):
    with pytest.raises(ValueError, match=r"two tensors are called layers\.0\.post"):
        ported(THEIRS, {"ln": "post"}, lambda weight: weight)


def check_state_is_kept(ported):
    before = {name: tensor.clone() for name, tensor in THEIRS.items()}
    ported(THEIRS, NAMES, lambda weight: 1 + weight)
    assert THEIRS.keys() == before.keys()
    assert all(torch.equal(THEIRS[name], before[name]) for name in before)


GAIN_CHECKS = [
    check_what_is_multiplied,
    check_input_is_kept,
    check_unknown_form,
    on_views(torch.rand(7), "1+w"),
]
FOLD_CHECKS = [
    check_fold,
    check_fold_keeps_its_inputs,
    on_views(*(torch.randn(*s) for s in ((3, 7), (3,), (7,), (7,)))),
]
PORTED_CHECKS = [
    *(check_names, check_a_norm_that_is_not_there),
    *(check_two_of_one_name, check_state_is_kept),
]


test_gain_of, test_gain_of_known_wrong = suite(gain_of, GAIN_CHECKS)
test_weight_of, test_weight_of_known_wrong = suite(
    weight_of, [check_inverse, on_views(torch.randn(7), "1+w")]
)
test_fold, test_fold_known_wrong = suite(fold, FOLD_CHECKS)
test_move, test_move_known_wrong = suite(move, [check_move])
test_ported, test_ported_known_wrong = suite(ported, PORTED_CHECKS)
