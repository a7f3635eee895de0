"""Cells: the bytes that an operation moves, its inputs and answers."""

import pytest
import torch

from scripts.measure.kernels import cells
from scripts.measure.kernels.cells import BOTH, NORMS, OPERATIONS
from tests.measure.kernels.given import cell


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
    if operation == "copy":
        assert cells.of_stream(made) == wanted


@pytest.mark.parametrize("norm", NORMS)
def test_both_passes_move_the_bytes_of_each(norm):
    both = cells.moved(cell(norm + BOTH))
    assert both == sum(cells.moved(cell(norm + way)) for way in ("", "_backward"))


def test_packed_queries_lie_in_a_projection():
    x = cells.inputs(cell("qk_norm_rope"), 0, "cpu")["x"]
    assert x.shape == (1, 4, 3, 16)
    assert x.stride() == (4 * 9 * 16, 9 * 16, 16, 1)
