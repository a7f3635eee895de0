"""The benchmark of kernels on a CPU: gate, bytes, streams, rows of what is missing."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from scripts.measure.kernels import (
    ceilings,
    cells,
    edges,
    gate,
    providers,
    report,
    rows,
    steps,
)
from scripts.measure.kernels.cells import OPERATIONS, Cell
from scripts.measure.records import Record, rows_problem
from snippets.memory_bound.streams import BLOCK
from snippets.qk_norm_rope.operator import turned


def cell(operation: str, **changes) -> Cell:
    heads = 3 if operation == "qk_norm_rope" else 1
    layout = "packed" if heads > 1 else "contiguous"
    made = Cell(operation, 12, 16, "float32", "float32", heads, layout)
    return replace(made, **changes)


# Bytes --------------------------------------------------------------------


def size(tensors) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


ONE_PASS = [name for name in OPERATIONS if not name.endswith("_forward_backward")]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("operation", ONE_PASS)
def test_bytes_are_those_of_the_tensors(operation, dtype):
    """Inputs read once, outputs written once, statistics in float32."""
    made = cell(operation, dtype=dtype, gain_dtype=dtype)
    inputs = OPERATIONS[operation].inputs(made, 0, "cpu")
    if operation == "soft_cap":
        inputs.pop("gain")
    if operation.endswith("backward"):
        inputs.pop("bias", None)  # its gradient does not need it
        if operation.startswith("add_"):
            inputs.pop("branch")  # the sum was kept instead
    answer = OPERATIONS[operation].answer(OPERATIONS[operation].inputs(made, 0, "cpu"))
    written = [a.to(getattr(torch, dtype)) for a in answer]
    statistics = {"soft_cap": 0, "layer_norm": 2, "layer_norm_backward": 2}
    extra = 4 * made.rows * statistics.get(operation, 1)
    moved = OPERATIONS[operation].moved(made)
    assert moved == size(inputs.values()) + size(written) + extra


@pytest.mark.parametrize("norm", cells.NORMS)
def test_both_passes_move_the_bytes_of_each(norm):
    made = cell(norm, dtype="bfloat16")
    both, *each = (
        OPERATIONS[f"{norm}{way}"].moved(made)
        for way in ("_forward_backward", "", "_backward")
    )
    assert both == sum(each)


def test_packed_queries_lie_in_a_projection():
    x = OPERATIONS["qk_norm_rope"].inputs(cell("qk_norm_rope"), 0, "cpu")["x"]
    assert x.shape == (1, 4, 3, 16)
    assert x.stride() == (4 * 9 * 16, 9 * 16, 16, 1)


# The gate -----------------------------------------------------------------


def test_distance_counts_units_in_the_last_place():
    exact = torch.tensor([1.0, 1.5, -2.0, 1e-50], dtype=torch.float64)
    found = exact.float()
    found[1] += 3 * 2**-23
    found[2] -= 2 * 2**-22
    measured = gate.distance(found, exact)
    assert measured.most_ulp == pytest.approx(3.0, abs=0.1)
    gap = ((found.double() - exact).norm() / exact.norm()).item()
    assert measured.relative == pytest.approx(gap)


def test_distance_of_what_was_never_written_is_infinite():
    found = torch.tensor([1.0, torch.nan])
    assert gate.distance(found, torch.ones(2).double()).relative == float("inf")


def test_another_shape_is_infinitely_far():
    exact = torch.ones(2, 3).double()
    for shape in ((0,), (6,), (3, 2), (1, 3)):
        assert gate.distance(torch.ones(shape), exact).relative == float("inf")
    assert gate.distance(torch.ones(0, 3), exact[:0]).relative == 0.0


VALUES = (torch.inf, -torch.inf, torch.nan, 2.0)


def test_what_is_not_finite_in_the_answer_must_be_the_same():
    exact = torch.tensor(VALUES).double()
    assert gate.distance(exact.float(), exact).relative == 0.0
    nothing = torch.full((3,), torch.nan)
    assert gate.distance(nothing, nothing.double()).relative == 0.0
    for place, right in enumerate(VALUES):
        for value in {0.0, 1e38, *VALUES} - {right}:
            found = exact.float()
            found[place] = value
            assert gate.distance(found, exact).relative >= 1


def test_the_same_bits_of_what_is_not_a_number():
    one = torch.tensor([1.0, torch.nan, -0.0]).expand(2, 3)
    assert gate.same_bits([one], [one.clone()])
    assert gate.same_bits([one[:0]], [one[:0]])
    assert not gate.same_bits([one], [one.nan_to_num()])
    assert not gate.same_bits([one], [one.abs()])


def exact_centile(found, exact):
    spacing = 2.0 ** (torch.floor(torch.log2(exact.abs())) - 23)
    units = ((found.double() - exact).abs() / spacing).flatten()
    return float(units.kthvalue(round(0.999 * units.numel())).values)


def test_a_sample_in_pieces_gives_the_distance_of_the_whole(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    exact = torch.randn(4096, 64, generator=generator, dtype=torch.float64)
    noise = torch.randn(4096, 64, generator=generator, dtype=torch.float64)
    found = (exact * (1 + 1e-6 * noise)).float()
    whole = gate.distance(found, exact)
    monkeypatch.setattr(gate, "PIECE", 10_000)
    monkeypatch.setattr(gate, "SAMPLE", 2**13)
    sampled = gate.distance(found, exact)
    assert sampled.relative == pytest.approx(whole.relative, rel=1e-12)
    assert sampled.most_ulp == whole.most_ulp
    assert whole.ulp == pytest.approx(exact_centile(found, exact))
    assert sampled.ulp == pytest.approx(whole.ulp, rel=0.15)


def test_a_sample_meets_every_column(monkeypatch):
    """Widths are powers of two; a step that is one too would meet few columns."""
    monkeypatch.setattr(gate, "SAMPLE", 2**10)
    exact = torch.full((4096, 64), 1.5, dtype=torch.float64)
    for column in range(64):
        found = exact.float()
        found[:, column] += 8 * 2**-23
        assert gate.distance(found, exact).ulp == pytest.approx(8.0)


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_answers_keep_nothing_for_a_gradient(operation):
    inputs = OPERATIONS[operation].inputs(cell(operation), 0, "cpu")
    answers = OPERATIONS[operation].answer(inputs)
    assert all(a.dtype == torch.float64 and not a.requires_grad for a in answers)
    assert not any(each.requires_grad for each in inputs.values())


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


def broken(cell, inputs):
    raise IndexError("ours")


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


# Edge cases ---------------------------------------------------------------


def edge(operation: str, case: str) -> Cell:
    (found,) = (c for c in edges.cells([operation], "tiny") if c.case == case)
    return found


@pytest.mark.parametrize("operation", ["layer_norm_backward", "add_rms_norm_backward"])
def test_edges_are_what_their_names_say(operation):
    found = {
        case: edges.inputs(edge(operation, case), 0, "cpu")
        for case in edges.CASES.keys() - {"huge"}
    }
    x = {case: inputs["x"] for case, inputs in found.items()}
    assert [len(x[case]) for case in ("no_rows", "one_row", "zeros")] == [0, 1, 7]
    assert not x["zeros"][::2].any() and x["zeros"][1::2].all()
    assert (x["mean"].mean(-1) - 1000).abs().max() < 1
    assert (x["loud"].argmax(-1) == 5).all() and found["loud"]["gain"][5] < 0.02
    assert x["not_finite"].isfinite().all(-1).tolist() == [True, False] * 3 + [True]
    plain = OPERATIONS[operation].inputs(edge(operation, "gaps"), 0, "cpu")
    for case in ("misaligned", "gaps"):
        for name, each in found[case].items():
            assert torch.equal(each, plain[name])
            if name in edges.BY_ROW:
                assert each.is_contiguous() == (case == "misaligned")
                assert (each.data_ptr() % 16 == 0) == (case == "gaps")
    assert x["gaps"].as_strided((7, 32), (32, 1))[:6, 24:].isnan().all()


def test_edges_of_heads_are_what_their_names_say():
    found = {
        case: edges.inputs(edge("qk_norm_rope", case), 0, "cpu")["x"]
        for case in edges.OF_HEADS
    }
    assert set(edges.OF_HEADS) == {
        cell.case for cell in edges.cells(["qk_norm_rope"], "full")
    }
    assert [found[case].shape[1] for case in ("no_rows", "one_row")] == [0, 1]
    assert not found["zeros"][..., ::2, :].any() and found["zeros"][..., 1, :].all()
    assert (found["loud"].argmax(-1) == 5).all()
    off = (~found["not_finite"].isfinite()).flatten(0, 2).any(-1).nonzero()
    assert off.flatten().tolist() == [1, 3, 5]
    for case, x in found.items():
        assert x.shape[2:] == (edges.HEADS, 24)
        if case not in ("no_rows", "one_row"):
            assert x.is_contiguous() == (case == "misaligned")
            assert (x.data_ptr() % 16 == 0) == (case != "misaligned")


def test_huge_cells_are_for_a_gpu_and_pass_32_bits():
    for size, count in (("tiny", 0), ("small", 0), ("full", 2)):
        found = edges.cells(["rms_norm", "soft_cap"], size)
        huge = [cell for cell in found if cell.case == "huge"]
        assert len(huge) == count
        assert all(2**31 < cell.elements < 1.01 * 2**31 for cell in huge)


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_an_answer_in_parts_is_that_of_the_whole(operation, monkeypatch):
    made = cell(operation)
    inputs = OPERATIONS[operation].inputs(made, 0, "cpu")
    whole = OPERATIONS[operation].answer(inputs)
    monkeypatch.setattr(edges, "AT_ONCE", 5 * made.width)  # 12 rows: 5, 5, 2
    for part, each in zip(edges.answer(made, inputs), whole, strict=True):
        assert torch.allclose(part, each, rtol=1e-14)


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_an_answer_that_is_only_rounded_passes_the_gate_of_a_gpu(operation):
    """No case is so uneven that the rounding of a few numbers fails it."""
    for made in edges.cells([operation], "small"):
        inputs = edges.inputs(made, 0, "cpu")
        for exact in edges.answer(made, inputs):
            found = exact.to(getattr(torch, made.dtype))
            most = gate.most_allowed(made.dtype, ours=True)
            assert gate.distance(found, exact).relative < 0.95 * most, made


def rms(x, gain, eps=cells.EPS):
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * gain


def layer(x, gain, bias, mean, variance):
    return (x - mean) * (variance + cells.EPS).rsqrt() * gain + bias


def without_epsilon(x, gain):
    return rms(x, gain, 0.0)


def squares_in_float16(x, gain):
    square = x.half().square().float().mean(-1, keepdim=True)
    return x * (square + cells.EPS).rsqrt() * gain


def statistic_of_two_rows(x, gain):
    square = x.square().mean(-1, keepdim=True)
    square = torch.cat((square[:-1].unfold(0, 2, 2).mean(-1).repeat(1, 2).view(-1, 1),
                        square[-1:]))  # fmt: skip
    return x * (square + cells.EPS).rsqrt() * gain


def infinities_left_out(x, gain):
    return rms(x, gain).nan_to_num()


def row_stride_taken_for_the_width(x, gain):
    return rms(x.as_strided(x.shape, (x.shape[1], 1)), gain)


def address_rounded_down(x, gain):
    return rms(x.as_strided(x.shape, x.stride(), 0), gain)


def last_row_unwritten(x, gain):
    y = rms(x, gain)
    y[-1] = torch.nan
    return y


def heads_without_epsilon(x, gain, cos, sin):
    return (turned(without_epsilon(x, gain), cos, sin),)


def heads_side_by_side(x, gain, cos, sin):
    """The stride of a token taken for that of its own heads."""
    dense = x.as_strided(x.shape, torch.empty(x.shape).stride())
    return (turned(rms(dense, gain), cos, sin),)


def difference_of_squares(x, gain, bias):
    mean = x.mean(-1, keepdim=True)
    variance = x.square().mean(-1, keepdim=True) - mean.square()
    return layer(x, gain, bias, mean, variance.relu())


def statistics_in_16_bits(x, gain, bias):
    mean = x.mean(-1, keepdim=True).bfloat16().float()
    return layer(x, gain, bias, mean, (x - mean).square().mean(-1, keepdim=True))


def mean_off_by_a_millionth(x, gain, bias):
    """What a slack of a few roundings must still see."""
    mean = x.mean(-1, keepdim=True)
    off = mean * (1 + 2.0**-20)
    return layer(x, gain, bias, off, (x - mean).square().mean(-1, keepdim=True))


def gain_gradient_unwritten(x, gain, dy):
    return torch.zeros_like(x), torch.full_like(gain, torch.nan)


WRONG = {
    without_epsilon: ("rms_norm", "zeros"),
    squares_in_float16: ("rms_norm", "loud"),
    statistic_of_two_rows: ("rms_norm", "not_finite"),
    infinities_left_out: ("rms_norm", "not_finite"),
    row_stride_taken_for_the_width: ("rms_norm", "gaps"),
    address_rounded_down: ("rms_norm", "misaligned"),
    last_row_unwritten: ("rms_norm", "one_row"),
    heads_without_epsilon: ("qk_norm_rope", "zeros"),
    heads_side_by_side: ("qk_norm_rope", "loud"),
    difference_of_squares: ("layer_norm", "mean"),
    statistics_in_16_bits: ("layer_norm", "mean"),
    mean_off_by_a_millionth: ("layer_norm", "mean"),
    gain_gradient_unwritten: ("rms_norm_backward", "no_rows"),
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda f: f.__name__)
def test_an_edge_rejects(wrong, known_wrong, monkeypatch):
    def check(function):
        def made(_, inputs):
            found = function(**inputs)
            return lambda: found if isinstance(found, tuple) else (found,)

        monkeypatch.setitem(providers.PROVIDERS, "ours", made)
        (row,) = rows.measured(edge(*WRONG[wrong]), ["ours"], rounds=0)
        assert row["device_seconds"] is None
        assert row["status"] == "ok"

    known_wrong.rejected_by([check], wrong)
    if WRONG[wrong] == ("rms_norm", "zeros"):  # and a right one passes
        check(rms)


# Providers ----------------------------------------------------------------


def partitioned(graph, inputs):
    """A backend that divides forward and backward pass as inductor does, and runs."""
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func

    run = aot_autograd(
        fw_compiler=lambda graph, _: make_boxed_func(graph.forward),
        partition_fn=min_cut_rematerialization_partition,
    )
    return run(graph, inputs)


@pytest.mark.parametrize("backend", ["aot_eager", partitioned])
@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_compiled_providers_pass_forward_and_backward(operation, backend, monkeypatch):
    """In one graph, and the backward pass more than once on one forward pass.

    The second backend divides the two passes at the cheapest place.
    """
    monkeypatch.setattr(providers, "BACKEND", backend)
    (found,) = rows.measured(cell(operation), ["compile"], rounds=3)
    assert found["status"] == "ok", found["why"]
    assert len(found["device_seconds"]) == 3
    assert not torch._functorch.config.donated_buffer


def test_options_are_those_that_this_torch_knows(monkeypatch):
    monkeypatch.setitem(providers.TUNED, "an_option_of_another_version", True)
    assert "coordinate_descent_tuning" in providers._tuned()
    assert "an_option_of_another_version" not in providers._tuned()


def test_a_model_s_norm_holds_its_weight_in_the_forward_pass(monkeypatch):
    """A caller's time must not hold what only the gradient needs."""
    monkeypatch.setattr(torch.func, "functional_call", broken)
    for operation in (
        *("rms_norm", "add_rms_norm", "qk_norm_rope"),
        *("rms_norm_forward_backward", "add_rms_norm_forward_backward"),
    ):
        (found,) = rows.measured(cell(operation), ["torch_unfused"], rounds=2)
        assert found["status"] == "ok", found["why"]


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("torch", torch.bfloat16),
        ("torch_unfused", torch.bfloat16),
        ("compile", torch.float32),
    ],
)
def test_models_rotate_in_their_own_dtype(name, tables, monkeypatch):
    real, seen = providers._rotated, set()

    def rotated(x, cos, sin):
        seen.add((x.dtype, cos.dtype, sin.dtype))
        return real(x, cos, sin)

    monkeypatch.setattr(providers, "_rotated", rotated)
    made = cell("qk_norm_rope", dtype="bfloat16", gain_dtype="bfloat16")
    if name == "compile":  # dynamo would not write into the set
        monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    (found,) = rows.measured(made, [name], rounds=2)
    assert found["status"] == "ok"
    assert seen == {(torch.bfloat16, tables, tables)}


class Asked(TorchDispatchMode):
    """The operators that run, by name."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.name().partition(".")[0])
        return function(*args, **kwargs or {})


@pytest.mark.parametrize("norm", cells.NORMS)
@pytest.mark.parametrize("name", ["ours", "torch", "torch_unfused"])
def test_both_passes_run_in_every_call(norm, name):
    if (norm, name) == ("layer_norm", "torch_unfused"):
        return  # there is none
    asked = {}
    for way in ("", "_backward", "_forward_backward"):
        made = cell(f"{norm}{way}")
        inputs = OPERATIONS[made.operation].inputs(made, 0, "cpu")
        call = providers.PROVIDERS[name](made, inputs)
        call()
        with Asked() as seen:
            call()
        apart = {"aten::detach", "aten::zeros"}  # autograd's, for the statistics
        asked[way] = [each for each in seen.names if each not in apart]
    assert asked[""] and asked["_backward"]
    assert sorted(asked["_forward_backward"]) == sorted(asked[""] + asked["_backward"])


def test_jax_is_a_row_that_says_why_it_is_not_timed():
    (found,) = rows.measured(cell("rms_norm"), ["jax"], rounds=2)
    assert found["status"] == "skipped" and "JAX" in found["why"]


# Streams ------------------------------------------------------------------

MIXES = ("1R1W", "2R1W", "2R2W", "3R1W")


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("moved", [1, 4096, 12_345, 10**6, 2**30, 402_694_144])
def test_streams_are_whole_blocks_and_say_their_bytes(mix, moved):
    """Triton loads 16 bytes at once if every tensor begins and ends at such a place."""
    count = ceilings.numbers(mix, moved)
    tensors = int(mix[0]) + int(mix[2])
    assert count % ceilings.ALIGNED == 0
    assert ceilings.bytes_of(mix, moved) == 2 * tensors * count
    assert ceilings.bytes_of(mix, moved) <= max(moved, 32 * tensors)
    if moved >= 10**6:
        assert count % BLOCK == 0
        assert ceilings.bytes_of(mix, moved) > 0.95 * moved


@pytest.mark.parametrize("mix", MIXES)
def test_tensors_of_a_stream_are_aligned(mix):
    for inputs, outputs in (ceilings._tensors(mix, m, "cpu", 0) for m in (500, 10**5)):
        assert (len(inputs), len(outputs)) == (int(mix[0]), int(mix[2]))
        assert all(each.data_ptr() % 16 == 0 for each in (*inputs, *outputs))


def test_streams_compute_their_sums_and_have_true_rows():
    for mix in MIXES:
        for way, calls in ceilings.streams(mix, 100_000, "cpu", 2).items():
            inputs, _ = ceilings._tensors(mix, 100_000, "cpu", 1)
            found = calls[1]()
            found = found if isinstance(found, list) else [found]
            exact = torch.stack(inputs).double().sum(0)
            assert way in (mix, "1R1W_copy")
            for each in found:
                assert torch.allclose(each.double(), exact, rtol=2**-7)
    beside = cell("rms_norm_backward")
    (found,) = steps.streams(100_000, ["2R1W"], 2, "own size", beside)
    assert found["bytes"] == ceilings.bytes_of("2R1W", 100_000)
    assert found["beside"] == "rms_norm_backward" and found["width"] == beside.width


def test_large_streams_stand_around_every_ten_cells_of_a_process(monkeypatch):
    cells_ = [cell("rms_norm_backward", rows=n) for n in range(1, 13)]
    monkeypatch.setattr(rows, "measured", lambda *_: [row("rms_norm", "ours", None)])
    large = [("large", mix) for mix in ("1R1W", "1R1W_copy", "2R1W")]

    def ran(first):
        """What each step of a process that begins with this one gives."""
        made = steps.of(cells_, ["ours"], "tiny")[first:]
        return [[(r["why"], r["provider"]) for r in step.run()] for step in made]

    whole, later = ran(0), ran(5)
    own = [(None, "ours"), ("own size", "2R1W")]
    assert whole[1] == whole[9] == later[1] == own
    assert whole[10] == later[0] == later[5] == large + own
    swept = [("sweep", way) for way in ("1R1W", "1R1W_copy")] * 2
    assert whole[0] == large + swept + own
    assert whole[11] == later[-1] == own + large + swept


def test_providers_are_timed_where_they_are_wanted(monkeypatch):
    asked = []
    monkeypatch.setattr(
        rows, "measured", lambda cell, names, *_: asked.append(names) or []
    )
    monkeypatch.setattr(steps, "streams", lambda *_: [])
    made = [cell("rms_norm"), cell("layer_norm")]
    only = {"compile": {made[1]}, "quack": set()}
    for step in steps.of(made, ["ours", "compile", "quack"], "tiny", only=only):
        step.run()
    assert asked == [["ours"], ["ours", "compile"]]


# What is made of it -------------------------------------------------------


CLOCK = itertools.count()


def row(operation, provider, seconds, **changes):
    """As a run writes it, a millisecond after the one before."""
    made = rows.row(Cell(operation, 100, 16, "bfloat16", "bfloat16"), provider)
    found = {"bytes": 10**9, "device_seconds": seconds, "method": "graph"}
    return {**made, **found, "at": next(CLOCK), **changes}


@pytest.fixture
def record():
    made = [
        row("stream", "1R1W", [1.05e-3] * 9, why="large"),
        row("stream", "1R1W", [1.155e-3] * 9, why="large"),
        row("stream", "1R1W", [9e-3] * 9, why="sweep", bytes=2 * 10**9),
        row("stream", "1R1W_copy", [1e-3] * 9, why="large"),
        row("stream", "1R1W", [1e-9] * 9, bytes=1000),  # small: cached
        row("stream", "2R2W", [1.25e-3] * 9, why="large"),
        row("stream", "2R2W", [2e-3] * 9, beside="add_rms_norm"),
        row("stream", "2R2W", None, status="failed"),
        row("rms_norm", "ours", [1e-3] * 9),
        row("rms_norm", "ours_again", [1.01e-3] * 9),
        row("rms_norm", "liger", [2e-3] * 9),
        row("rms_norm", "torch", [1.005e-3] * 9),
        row("add_rms_norm", "ours", [2.5e-3] * 9),
        row("add_rms_norm", "torch", [2e-3] * 9),
        row("add_rms_norm", "quack", None, status="skipped", why="not here"),
        row("add_rms_norm", "compile", [1e-3] * 9, method="event_flush"),
    ]
    where = {"device": {"name": "A GPU", "kind": "gpu"}}
    return Record("x", "m", "full", where, list(made[0]), made)


def test_shares_are_of_the_best_large_copy(record):
    (ours,) = report.timed(record, operation="rms_norm", provider="ours")
    assert report.share_of_copy(record, ours) == pytest.approx(1.0)
    (ours,) = report.timed(record, operation="add_rms_norm", provider="ours")
    assert report.share_of_copy(record, ours) == pytest.approx(0.4)
    assert report.share_of_mix(record, ours) == pytest.approx(0.8)  # its own bytes
    assert report.drift(record) == pytest.approx(0.1)


def test_peers_ahead_are_beyond_the_floor(record):
    assert report.floor(record) == pytest.approx(0.01)
    ((where, peer, factor),) = report.faster_peers(record)
    assert (where[0], peer, factor) == ("add_rms_norm", "torch", 1.25)


def test_common_facts(record):
    facts = report.common_facts(record)
    assert facts["rate_1r1w"] == "1.00 TB/s"
    assert facts["floor"] == "1.0 %"
    assert facts["drift"] == "10.0 %"
    assert facts["peers_ahead"] == "1"
    assert facts["skipped"] == "1"
    assert facts["rate_1r1w_copy"] == "1.00 TB/s"
    assert facts["by_events"] == "1"
    assert facts["mix_least"] == facts["mix_most"] == "80 %"
    line = report.line(record, "rms_norm", "liger")
    assert line == {16: pytest.approx(0.5)}


def copied(seconds):
    return row("stream", "1R1W", [seconds] * 9, why="large")


def test_cells_between_copies_that_disagree_are_kept_and_not_compared(record):
    made = [
        copied(1e-3),
        row("rms_norm", "ours", [1e-3] * 9),
        copied(1.019e-3),
        row("layer_norm", "ours", [1e-3] * 9),
        row("layer_norm", "torch", [1e-3] * 9),
        row("stream", "1R1W", [2e-3] * 9, why="own size"),  # no sample
        copied(0.99e-3),
        row("add_rms_norm", "ours", [1e-3] * 9),
    ]
    made[1], made[-1] = made[-1], made[1]  # as they stand in a record: of no matter
    found = replace(record, rows=made)
    assert {r["operation"] for r in report.timed(found)} == {"rms_norm", "add_rms_norm"}
    assert {cell[0] for cell in report.unsteady(found)} == {"layer_norm"}
    assert {cell[0] for cell in report.cells(found)} == {"rms_norm", "add_rms_norm"}
    assert report.line(found, "layer_norm", "ours") == {}
    facts = report.common_facts(found)
    assert (facts["unsteady"], facts["drift"]) == ("1", "2.9 %")
    calm = [{**r, "device_seconds": [1e-3] * 9} for r in made]
    assert report.common_facts(replace(record, rows=calm))["unsteady"] == "0"


def test_a_record_without_copies_has_no_shares(record):
    rows = [row for row in record.rows if row["operation"] != "stream"]
    bare = replace(record, rows=rows)
    facts = report.common_facts(bare)
    assert facts["rate_1r1w"] == facts["drift"] == facts["mix_most"] == "—"
    assert report.line(bare, "rms_norm", "ours") == {}
    found = report.share_facts(bare, ["rms_norm"], ["ours"])
    assert found == {"rms_norm_least": "—", "rms_norm_most": "—"}
