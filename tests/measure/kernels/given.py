"""What the tests of kernels share."""

from dataclasses import replace

from scripts.measure.kernels.cells import Cell


def cell(operation: str, **changes) -> Cell:
    heads = 3 if operation == "qk_norm_rope" else 1
    layout = "packed" if heads > 1 else "contiguous"
    return replace(Cell(operation, 12, 16, "float32", heads, layout), **changes)
