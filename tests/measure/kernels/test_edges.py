"""Edge cases are what their names say, and reject wrong kernels."""

import pytest
import torch

from scripts.measure.kernels import cells, edges, gate, providers, rows
from scripts.measure.kernels.cells import OPERATIONS, Cell
from snippets.qk_norm_rope.operator import turned
from tests.measure.kernels.given import cell


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
