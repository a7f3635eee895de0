"""Cells: the bytes that an operation moves, its inputs and its exact answers."""

import pytest
import torch

from scripts.measure.kernels import cells
from scripts.measure.kernels.cells import OPERATIONS
from tests.measure.kernels.given import cell


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


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_answers_keep_nothing_for_a_gradient(operation):
    inputs = OPERATIONS[operation].inputs(cell(operation), 0, "cpu")
    answers = OPERATIONS[operation].answer(inputs)
    assert all(a.dtype == torch.float64 and not a.requires_grad for a in answers)
    assert not any(each.requires_grad for each in inputs.values())
