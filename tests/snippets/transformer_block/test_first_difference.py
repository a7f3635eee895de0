"""norm_calls and first_difference: complete, in order, and exact about the place."""

import pytest
import torch
from torch import nn

from snippets.rms_norm.reference import RMSNorm
from snippets.transformer_block.decoder import Decoder
from snippets.transformer_block.first_difference import first_difference
from snippets.transformer_block.norm_calls import NormCall, is_norm, norm_calls
from tests.snippets.transformer_block import float64
from tests.snippets.transformer_block.float64 import QK


def call(name, x, y):
    return NormCall(name, torch.tensor(x), torch.tensor(y))


def calls():
    return [
        call("a", [[1.0, 2.0]], [[3.0, 4.0]]),
        call("b", [[5.0, 6.0]], [[7.0, 8.0]]),
    ]


def changed(place, **changes):
    found = calls()
    old = found[place]
    found[place] = NormCall(old.name, changes.get("x", old.x), changes.get("y", old.y))
    return found


def says(find, theirs, *words, ours=None):
    found = find(calls() if ours is None else ours, theirs)
    assert isinstance(found, str)
    for word in words:
        assert word in found, f"{found!r} lacks {word!r}"


def check_agreement(find):
    says(find, calls(), "all norms agree")
    says(find, changed(1, y=calls()[1].y * (1 + 1e-6)), "all norms agree")


def check_input_before_output(find):
    both = changed(1, x=calls()[1].x + 1, y=calls()[1].y + 1)
    says(find, both, "b: input")
    says(find, changed(1, y=calls()[1].y + 1), "b: same input, output")


def check_first_place(find):
    theirs = changed(0, y=calls()[0].y + 1)
    theirs[1] = NormCall("b", calls()[1].x + 1, calls()[1].y)
    says(find, theirs, "a: same input, output")


def check_small_but_wrong(find):
    """An eps of another model: half a per cent of one feature."""
    y = calls()[0].y.clone()
    y[0, 1] *= 1.005
    says(find, changed(0, y=y), "a: same input, output")


def check_scale(find):
    """Parallel is not equal."""
    says(find, changed(1, x=2 * calls()[1].x), "b: input")


def check_faint(find):
    """Differences count relative to the size of the tensor."""
    ours = [call("a", [[1e-6, 2e-6]], [[1e-6, 2e-6]])]
    theirs = [call("a", [[1e-6, 3e-6]], [[1e-6, 2e-6]])]
    says(find, theirs, "a: input", ours=ours)


def check_nan(find):
    says(find, changed(0, y=torch.full((1, 2), torch.nan)), "a: same input, output")


def check_dtype(find):
    says(find, changed(0, y=calls()[0].y.double()), "a: same input, output", "float64")


def check_shape(find):
    says(find, changed(1, x=calls()[1].x.T), "b: input shape (1, 2), not (2, 1)")


def check_missing(find):
    says(find, calls()[:1], "b: only in one model")
    says(find, calls(), "b: only in one model", ours=calls()[:1])


def check_counts(find):
    """A norm that lacks in the middle shifts the pairs: the count must be told."""
    says(find, calls()[1:], "a: input", "2 norms, not 1")
    says(find, calls(), "1 norms, not 2", ours=calls()[:1])


def check_zeros(find):
    """An all-zero tensor agrees with itself, and with nothing else."""
    zeros = [call("a", [[0.0, 0.0]], [[0.0, 0.0]])]
    says(find, zeros, "all norms agree", ours=zeros)
    other = [call("a", [[0.0, 1e-9]], [[0.0, 0.0]])]
    says(find, other, "a: input", ours=zeros)


CHECKS = [
    check_agreement,
    check_input_before_output,
    check_first_place,
    check_small_but_wrong,
    check_scale,
    check_faint,
    check_nan,
    check_dtype,
    check_shape,
    check_missing,
    check_counts,
    check_zeros,
]


def _report(ours, theirs, differs):
    for a, b in zip(ours, theirs, strict=False):
        if differs(a.x, b.x):
            return f"{a.name}: input shape {tuple(a.x.shape)}, not {tuple(b.x.shape)}"
        if differs(a.y, b.y):
            return f"{a.name}: same input, output {a.y.dtype}, not {b.y.dtype}"
    if len(ours) != len(theirs):
        longer = max(ours, theirs, key=len)
        return f"{longer[min(len(ours), len(theirs))].name}: only in one model"
    return "all norms agree"


def _exact(a, b):
    return (
        a.shape != b.shape or a.dtype != b.dtype or not torch.allclose(a, b, rtol=1e-4)
    )


def compares_shapes_only(ours, theirs):
    return _report(ours, theirs, lambda a, b: a.shape != b.shape or a.dtype != b.dtype)


def accepts_a_high_cosine(ours, theirs):
    def differs(a, b):
        if a.shape != b.shape or a.dtype != b.dtype:
            return True
        return not torch.cosine_similarity(a.flatten(), b.flatten(), 0) > 0.999

    return _report(ours, theirs, differs)


def absolute_tolerance_only(ours, theirs):
    def differs(a, b):
        if a.shape != b.shape or a.dtype != b.dtype:
            return True
        return not (a - b).abs().max() <= 1e-3

    return _report(ours, theirs, differs)


def bit_for_bit(ours, theirs):
    return _report(ours, theirs, lambda a, b: not torch.equal(a, b))


def lets_nan_pass(ours, theirs):
    def differs(a, b):
        if a.shape != b.shape or a.dtype != b.dtype:
            return True
        return bool((a - b).abs().max() > 1e-4 * a.abs().max())

    return _report(ours, theirs, differs)


def ignores_the_dtype(ours, theirs):
    def differs(a, b):
        return a.shape != b.shape or not torch.allclose(a, b.to(a.dtype), rtol=1e-4)

    return _report(ours, theirs, differs)


def looks_at_outputs_first(ours, theirs):
    for a, b in zip(ours, theirs, strict=False):
        if _exact(a.y, b.y):
            return f"{a.name}: same input, output {a.y.dtype}, not {b.y.dtype}"
        if _exact(a.x, b.x):
            return f"{a.name}: input shape {tuple(a.x.shape)}, not {tuple(b.x.shape)}"
    return _report(ours, theirs, _exact)


def looks_at_outputs_only(ours, theirs):
    blind = [NormCall(b.name, a.x, b.y) for a, b in zip(ours, theirs, strict=False)]
    return _report(ours, blind + theirs[len(blind) :], _exact)


def reports_the_last_difference(ours, theirs):
    found = _report(ours, theirs, _exact)
    for a, b in zip(ours[::-1], theirs[::-1], strict=False):
        if (last := _report([a], [b], _exact)) != "all norms agree":
            return last
    return found


def stops_at_the_shorter_list(ours, theirs):
    count = min(len(ours), len(theirs))
    return _report(ours[:count], theirs[:count], _exact)


def silent_about_the_count(ours, theirs):
    return first_difference(ours, theirs).split(" (")[0]


def divides_by_zero(ours, theirs):
    def differs(a, b):
        if a.shape != b.shape or a.dtype != b.dtype:
            return True
        return not (a - b).abs().max() / a.square().mean().sqrt() <= 1e-4

    return _report(ours, theirs, differs)


VARIANTS = [
    compares_shapes_only,
    accepts_a_high_cosine,
    absolute_tolerance_only,
    bit_for_bit,
    lets_nan_pass,
    ignores_the_dtype,
    looks_at_outputs_first,
    looks_at_outputs_only,
    reports_the_last_difference,
    stops_at_the_shorter_list,
    silent_about_the_count,
    divides_by_zero,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(first_difference)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


# norm_calls ------------------------------------------------------------------


def test_calls_are_all_norms_in_order():
    model, ids = Decoder(QK), float64.tokens(QK)
    found = norm_calls(model, ids)
    order = ["attention_norm", "attention.q_norm", "attention.k_norm", "ffn_norm"]
    names = [f"blocks.{i}.{name}" for i in range(QK.blocks) for name in order]
    assert [each.name for each in found] == [*names, "norm"]
    assert torch.equal(found[0].x, model.embedding(ids))
    assert torch.equal(found[0].y, model.blocks[0].attention_norm(found[0].x))
    assert not any(each.x.requires_grad or each.y.requires_grad for each in found)


def test_no_hook_stays_not_even_after_an_error():
    model = Decoder(QK)
    norm_calls(model, float64.tokens(QK))
    with pytest.raises(IndexError):
        norm_calls(model, torch.tensor([[QK.vocabulary]]))
    assert not any(module._forward_hooks for module in model.modules())


def test_calls_are_copies():
    """What is recorded does not change when the model works in place."""

    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = RMSNorm(3)

        def forward(self, x):
            y = self.norm(x)
            x.add_(1)
            return y.mul_(0)

    x = torch.tensor([[1.0, 2.0, 3.0]])
    expected = RMSNorm(3)(x).detach()
    (found,) = norm_calls(InPlace(), x.clone())
    assert torch.equal(found.x, x)
    assert torch.equal(found.y, expected)


def test_a_norm_called_twice_is_recorded_twice():
    norm = RMSNorm(3)
    model = nn.Sequential(norm, norm)
    assert len(norm_calls(model, torch.ones(1, 3))) == 2


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (RMSNorm(2), True),
        (nn.LayerNorm(2), True),
        (nn.RMSNorm(2), True),
        (nn.Linear(2, 2), False),
        (nn.Identity(), False),
    ],
    ids=lambda x: type(x).__name__,
)
def test_is_norm(module, expected):
    assert is_norm(module) == expected
