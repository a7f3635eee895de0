"""Cells: the bytes that an operation moves, its inputs, answers and edge cases."""

import pytest
import torch

from scripts.measure.kernels import cells
from scripts.measure.kernels.cells import BOTH, NORMS, OPERATIONS
from tests.measure.kernels.given import cell, gated


def size(tensors) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_bytes_are_those_of_the_tensors(operation, dtype):
    """Inputs read once, outputs written once, statistics in float32."""
    made = cell(operation, dtype=dtype)
    inputs = cells.inputs(made, 0, "cpu")
    answer = cells.answer(made, inputs)
    assert all(a.dtype == torch.float64 and not a.requires_grad for a in answer)
    if made.backward:
        inputs.pop("bias", None)  # its gradient does not need it
        if made.is_of("add_"):
            inputs.pop("branch")  # the sum was kept instead
    written = [a.to(getattr(torch, dtype)) for a in answer]
    statistics = 4 * made.rows * made.spec.statistics
    wanted = size(inputs.values()) + size(written) + statistics
    assert cells.moved(made) == wanted
    if made.is_of("stream"):
        assert cells.of_stream(made) == wanted


@pytest.mark.parametrize("norm", NORMS)
def test_both_passes_move_the_bytes_of_each(norm):
    both = cells.moved(cell(norm + BOTH))
    assert both == sum(cells.moved(cell(norm + way)) for way in ("", "_backward"))


def test_packed_queries_lie_in_a_projection():
    x = cells.inputs(cell("qk_norm_rope"), 0, "cpu")["x"]
    assert x.shape == (1, 4, 3, 16)
    assert x.stride() == (4 * 9 * 16, 9 * 16, 16, 1)


def test_edges_are_what_their_names_say():
    plain = cells.inputs(cell("add_rms_norm_backward"), 0, "cpu")
    for case in ("misaligned", "gaps"):
        found = cells.inputs(cell("add_rms_norm_backward", case=case), 0, "cpu")
        for name, each in found.items():
            assert torch.equal(each, plain[name])
            if name in cells.LARGE:
                assert each.is_contiguous() == (case == "misaligned")
                assert (each.data_ptr() % 16 == 0) == (case == "gaps")
    assert found["x"].as_strided((12, 24), (24, 1))[:11, 16:].isnan().all()


def rms(x, gain):
    return x * (x.square().mean(-1, keepdim=True) + cells.EPS).rsqrt() * gain


def row_stride_taken_for_the_width(x, gain):
    return rms(x.as_strided(x.shape, (x.shape[1], 1)), gain)


def address_rounded_down(x, gain):
    return rms(x.as_strided(x.shape, x.stride(), 0), gain)


WRONG = {row_stride_taken_for_the_width: "gaps", address_rounded_down: "misaligned"}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda f: f.__name__)
def test_an_edge_rejects(wrong, known_wrong, monkeypatch):
    made = cell("rms_norm", case=WRONG[wrong])

    def check(function):
        assert gated(monkeypatch, made, function)["status"] == "ok"

    check(rms)
    known_wrong.rejected_by([check], wrong)
