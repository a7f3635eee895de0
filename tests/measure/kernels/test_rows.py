"""Rows of the benchmark: passed, wrong, skipped, failed."""

import pytest
import torch

from scripts.measure.kernels import cells, gate, providers, rows, timing
from scripts.measure.kernels.cells import Cell
from scripts.measure.records import rows_problem
from tests.measure.kernels.given import broken, cell, gated


@pytest.fixture(autouse=True)
def small_cache(monkeypatch):
    """As a GPU's, it would ask for thousands of sets of the tests' small tensors."""
    monkeypatch.setattr(timing, "L2", 1)


def test_a_wrong_kernel_has_a_row_and_no_time(monkeypatch):
    monkeypatch.setitem(
        providers.PROVIDERS, "wrong", lambda _, i: lambda: (1.03 * i["x"],)
    )
    found = rows.measured(cell("rms_norm"), ["ours", "wrong"], rounds=2)
    assert rows_problem(list(found[0]), found) is None
    assert [row["status"] for row in found] == ["ok", "wrong"]
    assert found[1]["device_seconds"] is None
    assert found[1]["relative"][0] > 2e-2


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


def without_gain(x, gain):
    return rms(x, torch.ones_like(gain))


def sum_for_a_mean(x, gain):
    return x * (x.square().sum(-1, keepdim=True) + cells.EPS).rsqrt() * gain


def last_row_unwritten(x, gain):
    y = rms(x, gain)
    y[-1] = torch.nan
    return y


def statistic_of_two_rows(x, gain):
    square = x.square().mean(-1).view(-1, 2).mean(-1).repeat_interleave(2)[:, None]
    return x * (square + cells.EPS).rsqrt() * gain


def gain_in_16_bits(x, gain):
    return rms(x, gain.bfloat16().float())


WRONG = [without_gain, sum_for_a_mean, last_row_unwritten, statistic_of_two_rows]


@pytest.mark.parametrize("wrong", [*WRONG, gain_in_16_bits])
def test_the_gate_rejects(wrong, known_wrong, monkeypatch):
    def check(function):
        made = cell("rms_norm", rows=64, width=512)
        assert gated(monkeypatch, made, function)["status"] == "ok"

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
    distances = []
    for seed in range(100):
        generator = torch.Generator().manual_seed(seed)
        exact = torch.randn(64, generator=generator, dtype=torch.float64)
        dx, rounded = torch.ones(2, 64), exact.bfloat16()
        found = checked(made, [dx, exact], [dx.bfloat16(), rounded])
        assert found["status"] == "ok"
        distances.append(found["relative"][1])
    assert max(distances) > gate.OURS["bfloat16"]
    off = exact * (1 + 2**-8)
    found = checked(made, [dx, exact], [dx.bfloat16(), off.bfloat16()])
    assert found["status"] == "wrong"


def test_missing_and_failing_peers_are_rows(monkeypatch):
    monkeypatch.setitem(providers.PROVIDERS, "torch", broken)
    found = rows.measured(cell("rms_norm"), ["ours", "torch", "liger"], rounds=2)
    status = {row["provider"]: (row["status"], row["why"]) for row in found}
    assert status["torch"] == ("failed", "IndexError: ours")
    assert status["ours"] == ("ok", None)
    if status["liger"][0] != "ok":
        assert status["liger"][0] == "skipped"
        assert "liger_kernel is not here" in status["liger"][1]


def test_our_own_failure_is_loud_here_and_a_row_on_a_gpu(monkeypatch):
    monkeypatch.setitem(providers.PROVIDERS, "ours", broken)
    with pytest.raises(IndexError, match="ours"):
        rows.measured(cell("rms_norm"), ["ours"], rounds=2)
    monkeypatch.setattr(rows, "interpreted", lambda: False)
    found = rows.measured(cell("rms_norm"), ["ours", "torch"], rounds=2)
    assert [row["status"] for row in found] == ["failed", "ok"]


def test_who_fails_while_it_is_timed_is_a_row(monkeypatch):
    calls = iter(range(6))

    def later(_, inputs):
        def call():
            if next(calls) > 4:
                raise RuntimeError("out of memory")
            return (rms(**inputs),)

        return call

    monkeypatch.setitem(providers.PROVIDERS, "later", later)
    found = rows.measured(cell("rms_norm"), ["ours", "later"], rounds=4)
    assert [row["status"] for row in found] == ["ok", "failed"]
    assert found[1]["why"] == "RuntimeError: out of memory"
    assert found[1]["device_seconds"] is None


def test_fresh_memory_is_poisoned_for_ours_alone(monkeypatch):
    """A compiled peer must be timed in the mode in which it was compiled."""
    seen = {"ours": [], "torch": []}

    def watching(name):
        def made(cell, inputs):
            modes, real = [], providers._ours(cell, inputs)
            seen[name].append(modes)

            def call():
                on = torch.are_deterministic_algorithms_enabled()
                modes.append((on, torch.is_grad_enabled()))
                return real()

            return call

        return made

    for name in seen:
        monkeypatch.setitem(providers.PROVIDERS, name, watching(name))
    rows.measured(cell("rms_norm"), list(seen), rounds=2)
    assert {mode for calls in seen["torch"] for mode in calls} == {(False, True)}
    assert seen["ours"][0][:4] == [(on, True) for on in (False, True, True, False)]
