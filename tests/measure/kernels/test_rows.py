"""Rows of the benchmark: passed, wrong, skipped, failed."""

import pytest
import torch

from scripts.measure.kernels import cells, gate, providers, rows, timing
from scripts.measure.kernels.cells import Cell
from scripts.measure.records import rows_problem
from tests.measure.kernels.given import cell


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    """As a GPU's, it would ask for thousands of sets of the tests' small tensors."""
    monkeypatch.setattr(timing, "L2", 1)


def test_whatever_becomes_of_a_provider_it_has_its_row(monkeypatch):
    def broken(cell, inputs):
        raise IndexError("no kernel\nand more")

    def later(cell, inputs):  # while it is timed
        calls = iter([None] * 5)
        return lambda: (rms(**inputs), next(calls))[:1]

    def wrong(cell, inputs):
        return lambda: (1.03 * inputs["x"],)

    def missing(cell, inputs):
        raise providers.Missing("not here")

    for each in (broken, later, wrong, missing):
        monkeypatch.setitem(providers.PROVIDERS, each.__name__, each)
    names = ["ours", "broken", "later", "wrong", "missing"]
    found = rows.measured(cell("rms_norm"), names, rounds=4)
    assert rows_problem(list(found[0]), found) is None
    assert [(row["status"], row["why"]) for row in found] == [
        ("ok", None),
        ("failed", "IndexError: no kernel"),
        ("failed", "StopIteration: "),
        ("wrong", None),
        ("skipped", "not here"),
    ]
    assert [row["device_seconds"] is None for row in found] == [False, *[True] * 4]
    assert found[3]["relative"][0] > 2e-2
    # Ours is loud here, and on a GPU a row like the others.
    monkeypatch.setitem(providers.PROVIDERS, "ours", broken)
    with pytest.raises(IndexError, match="no kernel"):
        rows.measured(cell("rms_norm"), ["ours"], rounds=2)
    monkeypatch.setattr(rows, "interpreted", lambda: False)
    found = rows.measured(cell("rms_norm"), ["ours", "torch"], rounds=2)
    assert [row["status"] for row in found] == ["failed", "ok"]


def checked(made: Cell, answer, *outputs) -> dict:
    """The gate, for calls of ours that give one output after the other."""
    waiting = iter((outputs[0], *outputs, *outputs))
    return rows.checked(made, lambda: next(waiting), answer, ours=True)


def test_one_element_in_six_hundred_off_by_three_units_is_wrong():
    made = cell("rms_norm", rows=64, width=512, dtype="bfloat16")
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(64, 512, generator=generator, dtype=torch.float64)
    right = exact.bfloat16()
    off = right.clone()
    off.view(torch.int16).flatten()[::600] += 3
    assert checked(made, [exact], [right])["status"] == "ok"
    wrong = checked(made, [exact], [off])
    assert wrong["relative"][0] < gate.OURS["bfloat16"]  # as a whole it is near
    assert (wrong["status"], wrong["beyond"][0]) == (
        "wrong",
        pytest.approx(1 / 600, 0.1),
    )


def rms(x, gain, eps=cells.EPS):
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * gain


def last_row_unwritten(x, gain):
    y = rms(x, gain)
    y[-1] = torch.nan
    return y


def statistic_of_two_rows(x, gain):
    square = x.square().mean(-1).view(-1, 2).mean(-1).repeat_interleave(2)[:, None]
    return x * (square + cells.EPS).rsqrt() * gain


def gain_in_16_bits(x, gain):
    return rms(x, gain.bfloat16().float())


@pytest.mark.parametrize(
    "wrong", [last_row_unwritten, statistic_of_two_rows, gain_in_16_bits]
)
def test_the_gate_rejects(wrong, known_wrong, monkeypatch):
    made = cell("rms_norm", rows=64, width=512)

    def check(function):
        ours = lambda _, inputs: lambda: (function(**inputs),)  # noqa: E731
        monkeypatch.setitem(providers.PROVIDERS, "ours", ours)
        (row,) = rows.measured(made, ["ours"], rounds=1)
        assert row["status"] == "ok"

    check(rms)
    known_wrong.rejected_by([check], wrong)


def test_ours_must_repeat_its_bits():
    made = cell("rms_norm", rows=4, width=8)
    (exact,) = cells.answer(made, cells.inputs(made, 0, "cpu"))
    once = exact.float()
    twice = once.clone()
    twice.view(torch.int32)[0, 0] += 1
    found = checked(made, [exact], [once], [twice])
    assert (found["status"], found["why"]) == ("wrong", "other bits when repeated")
    assert checked(made, [exact], [once])["status"] == "ok"


def test_a_few_numbers_may_be_unlucky_and_are_not_wrong():
    """The gain's gradient of narrow heads: rounding alone can pass the limit."""
    made = cell("rms_norm_backward", rows=2, width=64, dtype="bfloat16")
    dx = torch.ones(2, 64)
    exact = torch.full((64,), 1 + 2**-9, dtype=torch.float64)  # right between two
    found = checked(made, [dx, exact], [dx.bfloat16(), exact.bfloat16()])
    assert found["status"] == "ok"
    assert found["relative"][1] > gate.OURS["bfloat16"]
    off = exact.bfloat16() + 2**-7
    found = checked(made, [dx, exact], [dx.bfloat16(), off])
    assert found["status"] == "wrong"


def test_fresh_memory_is_poisoned_for_ours_alone(monkeypatch):
    """A compiled peer must be timed in the mode in which it was compiled."""
    modes = {"ours": [], "torch": []}
    for name, seen in modes.items():

        def made(cell, inputs, real=providers.PROVIDERS[name], seen=seen):
            call = real(cell, inputs)
            on = torch.are_deterministic_algorithms_enabled
            return lambda: (seen.append(on()), call())[1]

        monkeypatch.setitem(providers.PROVIDERS, name, made)
    rows.measured(cell("rms_norm"), list(modes), rounds=2)
    assert not any(modes["torch"])
    assert modes["ours"][:4] == [False, True, True, False]
