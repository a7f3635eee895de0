"""Rows of the benchmark: passed, wrong, skipped, failed."""

from dataclasses import replace

import pytest
import torch

from scripts.measure.kernels import cells, edges, gate, providers, rows, steps
from scripts.measure.kernels.cells import OPERATIONS, Cell
from scripts.measure.records import rows_problem
from tests.measure.kernels.given import broken, cell


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_every_provider_that_is_here_passes(operation):
    found = rows.measured(
        cell(operation), ["ours", "ours_again", "torch", "torch_unfused"], rounds=2
    )
    assert rows_problem(list(found[0]), found) is None
    status = {row["provider"]: row["status"] for row in found}
    assert status["ours"] == status["ours_again"] == "ok"
    assert set(status.values()) <= {"ok", "skipped"}
    for row in found:
        if row["status"] == "ok":
            assert len(row["device_seconds"]) == 2
            assert row["same_bits"] is True
            assert max(row["relative"]) < 1e-6
            assert row["bytes"] == OPERATIONS[operation].moved(cell(operation))
        else:
            assert row["why"]


def test_a_wrong_kernel_has_a_row_and_no_time(monkeypatch):
    """RMSNorm with epsilon outside the root, on small inputs, as a provider."""

    def wrong(_, inputs):
        x = 1e-3 * inputs["x"]
        inputs["x"] = x
        scale = 1 / (x.square().mean(-1, keepdim=True).sqrt() + cells.EPS)
        return lambda: (x * scale * inputs["gain"],)

    monkeypatch.setitem(providers.PROVIDERS, "wrong", wrong)
    (found,) = rows.measured(cell("rms_norm"), ["wrong"], rounds=2)
    assert found["status"] == "ok" or found["relative"][0] > 1e-4
    monkeypatch.setitem(
        providers.PROVIDERS, "wrong", lambda _, i: lambda: (1.03 * i["x"],)
    )
    (found,) = rows.measured(cell("rms_norm"), ["wrong"], rounds=2)
    assert found["status"] == "wrong"
    assert found["device_seconds"] is None
    assert found["relative"][0] > 2e-2


def gated(monkeypatch, made: Cell, answer, *outputs) -> dict:
    """The gate of a GPU, for calls of ours that give one output after the other."""
    monkeypatch.setattr(rows, "interpreted", lambda: False)
    waiting = iter((outputs[0], *outputs, *outputs))
    return rows.checked(made, [lambda: next(waiting)], answer, ours=True)


def test_one_element_in_six_hundred_off_by_three_units_is_wrong(monkeypatch):
    made = cell("soft_cap", rows=64, width=512, dtype="bfloat16")
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(64, 512, generator=generator, dtype=torch.float64)
    right = exact.bfloat16()
    off = right.clone()
    off.view(torch.int16).flatten()[::600] += 3
    assert gated(monkeypatch, made, [exact], [right])["status"] == "ok"
    wrong = gated(monkeypatch, made, [exact], [off])
    assert wrong["relative"][0] < gate.OURS["bfloat16"]  # as a whole it is near
    assert (wrong["status"], wrong["ulp"][0]) == ("wrong", pytest.approx(3, abs=0.6))


def capped(x):
    return 30.0 * torch.tanh(x.double() / 30.0)


def identity(x):
    return x


def cut_off(x):
    return x.clamp(-30.0, 30.0)


def without_a_series(x):
    """1 - 2 / (1 + e) in float32: near 0 it cancels."""
    return 30.0 * (1.0 - 2.0 / (1.0 + (x.float() / 15.0).exp()))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("wrong", [identity, cut_off, without_a_series])
def test_a_timed_soft_cap_must_cap(wrong, dtype, known_wrong, monkeypatch):
    """On inputs below and beyond the cap: the limits are those of a GPU."""
    monkeypatch.setattr(rows, "interpreted", lambda: False)
    made = cell("soft_cap", rows=64, width=512, dtype=dtype)

    def check(function):
        def provider(_, inputs):
            found = function(inputs["x"]).to(inputs["x"].dtype)
            return lambda: (found,)

        monkeypatch.setitem(providers.PROVIDERS, "ours", provider)
        (row,) = rows.measured(made, ["ours"], rounds=0)
        assert row["status"] == "ok"

    known_wrong.rejected_by([check], wrong)
    check(capped)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_our_soft_cap_passes_the_gate_of_a_gpu(dtype, monkeypatch):
    """Not in bfloat16, to which the interpreter truncates."""
    monkeypatch.setattr(rows, "interpreted", lambda: False)
    made = cell("soft_cap", rows=64, width=512, dtype=dtype)
    (row,) = rows.measured(made, ["ours"], rounds=0)
    assert row["status"] == "ok"


def test_ours_must_repeat_its_bits(monkeypatch):
    made = cell("soft_cap", rows=4, width=8)
    (exact,) = OPERATIONS["soft_cap"].answer(edges.inputs(made, 0, "cpu"))
    once = exact.float()
    twice = once.clone()
    twice.view(torch.int32)[0, 0] += 1
    found = gated(monkeypatch, made, [exact], [once], [twice])
    assert (found["status"], found["why"]) == ("wrong", "other bits when repeated")
    assert gated(monkeypatch, made, [exact], [once])["status"] == "ok"


def test_a_few_numbers_may_be_unlucky_and_are_not_wrong(monkeypatch):
    """The gain's gradient of narrow heads: rounding alone can pass the limit."""
    made = cell("rms_norm_backward", rows=2, width=64, dtype="bfloat16")
    distances = []
    for seed in range(200):
        generator = torch.Generator().manual_seed(seed)
        exact = torch.randn(64, generator=generator, dtype=torch.float64)
        dx = torch.ones(2, 64)
        found = gated(monkeypatch, made, [dx, exact], [dx.bfloat16(), exact.bfloat16()])
        assert found["status"] == "ok"
        distances.append(found["relative"][1])
    assert max(distances) > gate.OURS["bfloat16"]
    off = exact * (1 + 2**-8)
    found = gated(monkeypatch, made, [dx, exact], [dx.bfloat16(), off.bfloat16()])
    assert found["status"] == "wrong"


def test_few_numbers_that_are_truncated_are_wrong(monkeypatch):
    """None is a unit off, and they are near twice as far as rounding takes them."""
    made = cell("soft_cap", rows=1, width=64, dtype="bfloat16")
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(1, 64, generator=generator).double()
    cut = (exact.float().view(torch.int32) & -(2**16)).view(torch.float32).bfloat16()
    assert gated(monkeypatch, made, [exact], [exact.bfloat16()])["status"] == "ok"
    found = gated(monkeypatch, made, [exact], [cut])
    assert (found["status"], found["ulp"][0] <= gate.ULP) == ("wrong", True)
    assert found["relative"][0] < 2.5 * gate.rounding(exact, torch.bfloat16)


def test_many_numbers_have_no_bad_luck(monkeypatch):
    """All near one, where the rounding of bfloat16 is widest: wrong if not few."""
    generator = torch.Generator().manual_seed(0)
    exact = 1 + 0.1 * torch.rand(257, 256, generator=generator, dtype=torch.float64)
    for count, status in ((255, "ok"), (257, "wrong")):  # of 2**16 / 256
        made = cell("soft_cap", rows=count, width=256, dtype="bfloat16")
        part = exact[:count]
        found = gated(monkeypatch, made, [part], [part.bfloat16()])
        assert found["status"] == status


def test_missing_and_failing_peers_are_rows(monkeypatch):
    def broken(cell, inputs):
        raise IndexError("the peer's own\nmany lines")

    monkeypatch.setitem(providers.PROVIDERS, "liger", broken)
    found = rows.measured(cell("rms_norm"), ["ours", "liger", "quack"], rounds=2)
    status = {row["provider"]: (row["status"], row["why"]) for row in found}
    assert status["liger"] == ("failed", "IndexError: the peer's own")
    assert status["quack"][0] == "skipped"
    assert "quack is not here" in status["quack"][1]


def test_our_own_failure_is_loud(monkeypatch):
    def broken(cell, inputs):
        raise IndexError("ours")

    monkeypatch.setitem(providers.PROVIDERS, "ours", broken)
    with pytest.raises(IndexError, match="ours"):
        rows.measured(cell("rms_norm"), ["ours"], rounds=2)


def test_an_output_with_nan_is_a_wrong_row(monkeypatch):
    def unwritten(_, inputs):
        return lambda: (torch.full_like(inputs["x"], torch.nan),)

    monkeypatch.setitem(providers.PROVIDERS, "unwritten", unwritten)
    found = rows.measured(cell("rms_norm"), ["ours", "unwritten"], rounds=2)
    assert rows_problem(list(found[0]), found) is None
    ours, wrong = found
    assert ours["status"] == "ok"
    assert wrong["status"] == "wrong"
    assert wrong["relative"] == wrong["ulp"] == wrong["most_ulp"] == [None]
    assert wrong["same_bits"] is True and wrong["device_seconds"] is None


def failing_after(calls: int):
    """A provider that is right so often, and then raises."""

    def made(cell, inputs):
        ours, left = providers.PROVIDERS["ours"](cell, inputs), [calls]

        def call():
            left[0] -= 1
            if left[0] < 0:
                raise ValueError("out of resources")
            return ours()

        return call

    return made


@pytest.mark.parametrize("calls", [3, 4, 6, 7])
def test_an_error_while_timing_is_a_row_and_others_keep_their_times(monkeypatch, calls):
    monkeypatch.setitem(providers.PROVIDERS, "liger", failing_after(calls))
    found = rows.measured(cell("rms_norm"), ["ours", "liger", "torch"], 2, 2)
    assert rows_problem(list(found[0]), found) is None
    ours, liger, other = found
    assert liger["status"] == "failed"
    assert liger["why"] == "ValueError: out of resources"
    assert liger["relative"] and liger["device_seconds"] is None
    for each in (ours, other):
        assert each["status"] == "ok"
        assert len(each["device_seconds"]) == len(each["call_seconds"]) == 2


def test_our_own_failure_on_a_gpu_is_a_row(monkeypatch, capsys):
    monkeypatch.setitem(providers.PROVIDERS, "ours", broken)
    monkeypatch.setattr(rows, "interpreted", lambda: False)
    ours, other = rows.measured(cell("rms_norm"), ["ours", "torch"], rounds=2)
    assert (ours["status"], ours["why"]) == ("failed", "IndexError: ours")
    assert "rms_norm 12x16 ours: failed, IndexError" in capsys.readouterr().err
    assert other["status"] == "ok" and other["device_seconds"]


def test_a_cell_that_does_not_fit_is_failed_rows(monkeypatch):
    def too_large(inputs):
        raise MemoryError("no room")

    operation = replace(OPERATIONS["rms_norm"], answer=too_large)
    monkeypatch.setitem(OPERATIONS, "rms_norm", operation)
    with pytest.raises(MemoryError):
        rows.measured(cell("rms_norm"), ["ours", "torch"], rounds=2)
    monkeypatch.setattr(rows, "interpreted", lambda: False)
    found = rows.measured(cell("rms_norm"), ["ours", "torch"], rounds=2)
    assert [row["status"] for row in found] == ["failed"] * 2
    assert {row["why"] for row in found} == {"MemoryError: no room"}


def test_a_lost_device_ends_the_process_after_its_cell(monkeypatch):
    (first, _) = steps.of([cell("rms_norm"), cell("layer_norm")], ["ours"], "tiny")
    answers = iter([True, False, False])
    monkeypatch.setattr(steps.capture, "alive", lambda: next(answers))
    found = [(row["provider"], row["why"]) for row in first.run()]
    assert ("ours", None) in found
    assert "own size" not in {why for _, why in found}
    with pytest.raises(SystemExit) as ended:
        first.run()
    assert ended.value.code == steps.LOST


def test_a_stream_that_fails_is_a_row(monkeypatch):
    monkeypatch.setattr(rows, "interpreted", lambda: False)
    monkeypatch.setattr(steps.ceilings, "streams", broken)
    (found,) = steps.streams(4096, ["2R1W"], 2, "large")
    assert (found["status"], found["provider"]) == ("failed", "2R1W")
    assert rows_problem(list(found), [found]) is None


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
