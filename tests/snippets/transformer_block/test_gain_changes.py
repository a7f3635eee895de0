"""A drift of gains is split into what they share and what each does alone."""

import pytest
import torch

from snippets.transformer_block.gain_changes import gain_changes

OLD = {
    "blocks.0.attention_norm.gain": torch.tensor([1.0, 2.0, 0.5]),
    "model.norm.weight": torch.tensor([1.0, 1.0]),
    "blocks.0.ffn.up.weight": torch.ones(3, 3),
}


def test_equal_states_are_exactly_one_and_zero():
    assert gain_changes(OLD, OLD) == dict.fromkeys(list(OLD)[:2], (1.0, 0.0))


def test_a_common_factor_leaves_no_rest_and_one_entry_leaves_some():
    new = OLD | {"model.norm.weight": torch.tensor([1.0, 1.5])}
    new["blocks.0.attention_norm.gain"] = 0.8 * new["blocks.0.attention_norm.gain"]
    found = gain_changes(OLD, new)
    assert found["blocks.0.attention_norm.gain"] == pytest.approx((0.8, 0), abs=1e-7)
    # [1, 1.5] = 1.25 [1, 1] + [-0.25, 0.25]
    assert found["model.norm.weight"] == pytest.approx((1.25, 0.25))


def test_distances_from_one_are_taken_as_gains():
    old, new = ({"norm.weight": torch.full((4,), w)} for w in (0.0, 0.25))
    assert gain_changes(old, new, one=1.0)["norm.weight"] == pytest.approx((1.25, 0))
