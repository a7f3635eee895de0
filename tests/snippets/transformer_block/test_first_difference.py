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
from tests.wrong import suite


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


test_right, test_known_wrong = suite(first_difference, CHECKS)


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
