"""The experiment measures what its page says, and says it in both languages."""

from math import log

import torch

from scripts.experiments import shared_shift_loss
from scripts.experiments.shared_shift_loss import ARMS, NORMS, SEEDS, SHIFTS
from tests.experiment_checks import select, with_values

TINY = shared_shift_loss.SIZES["tiny"]
LINES = [len(ARMS)]


def test_rows(rows):
    for norm in NORMS:
        for kind in SHIFTS:
            found = select(rows, norm=norm, shift=kind)
            assert len(found) == len(SEEDS) * len(TINY["rates"])
            assert all(1 < row["value"] < 2 * log(256) for row in found)


def test_both_shifts_have_the_same_energy_and_one_a_mean():
    for d in (6, 8, 32):
        mean, zero_mean = (
            shared_shift_loss.shift_of(kind, d, 1) for kind in SHIFTS[1:]
        )
        assert mean.norm() == zero_mean.norm()
        assert mean.mean() == shared_shift_loss.SHIFT and zero_mean.mean() == 0
    assert not torch.equal(zero_mean, shared_shift_loss.shift_of("zero_mean", 32, 2))


def test_layer_norm_cannot_see_the_mean_and_sees_the_other():
    """In the loss as drawn; RMSNorm sees both."""
    text = torch.randint(256, (2, TINY["context"]))
    for norm in NORMS:
        none, mean, zero_mean = (
            shared_shift_loss.fresh(norm, kind, TINY, 0)(text) for kind in SHIFTS
        )
        close = torch.allclose(none, mean, atol=1e-4)
        assert close == (norm == "layer_norm")
        assert not torch.allclose(none, zero_mean, atol=1e-2)


def planted(row):
    cost = {"none": 0.0, "mean": 0.1, "zero_mean": 0.25}[row["shift"]]
    return 2 + cost * (row["norm"] == "rms_norm") + (row["rate"] == 1e-3)


def test_facts_say_what_the_rows_say(record):
    made = with_values(record, planted, "value")
    facts = shared_shift_loss.facts(made)
    assert facts["rms_norm_none"] == "2.000" and facts["rms_norm_mean"] == "2.100"
    assert facts["rms_norm_mean_cost"].startswith("0.100")
    assert facts["rms_norm_zero_mean_cost"].startswith("0.250")
    assert facts["layer_norm_zero_mean_cost"].startswith("0.000")
