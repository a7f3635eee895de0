"""Kernels that readers might write: the right ones with one thing changed."""

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import torch
import triton
from torch import Tensor

from tests.kernel_gate import FAR, mutant, variants

SOFT_CAP = {
    "cap_not_multiplied_back": (
        "cap * tanh(value * (1.0 / cap))",
        "tanh(value * (1.0 / cap))",
    ),
    "cap_left_out_of_tanh": ("cap * tanh(value * (1.0 / cap))", "cap * tanh(value)"),
    "clamp": (
        "cap * tanh(value * (1.0 / cap))",
        "tl.minimum(tl.maximum(value, -cap), cap)",
    ),
    "exp_alone_near_zero": ("s < 0.0625", "s < 0.0"),
    "series_too_far_out": ("s < 0.0625", "s < 1.0"),
    "growing_exponential": (
        "1.0 - 2.0 / (1.0 + tl.exp2(z * TWO))",
        "(tl.exp2(z * TWO) - 1.0) / (1.0 + tl.exp2(z * TWO))",
    ),
    "sign_lost": ("tl.exp2(z * TWO)", "tl.exp2(tl.abs(z) * TWO)"),
    "power_of_e_taken_for_two": ("tl.exp2(z * TWO)", "tl.exp2(z * 2.0)"),
    "last_block_unwritten": (
        "grid = (triton.cdiv(size, BLOCK),)  # (3)!",
        "grid = (max(1, size // BLOCK),)",
    ),
    "last_element_unwritten": (
        "element_ty), mask=inside)  # (6)!",
        "element_ty), mask=place + 1 < size)",
    ),
    "every_program_in_the_first_block": (
        "first = tl.program_id(0).to(tl.int64) * BLOCK",
        "first = tl.program_id(0).to(tl.int64) * 0",
    ),
    "offsets_in_int32": (
        "first = tl.program_id(0).to(tl.int64) * BLOCK",
        "first = tl.program_id(0) * BLOCK",
    ),
    "slope_at_offsets_in_int32": (
        "place = tl.program_id(0).to(tl.int64) * BLOCK",
        "place = tl.program_id(0) * BLOCK",
    ),
    "slope_of_one": ("slope * tanh_slope(value * (1.0 / cap))", "slope"),
    "slope_without_the_cap": ("tanh_slope(value * (1.0 / cap))", "tanh_slope(value)"),
    "slope_divided_by_the_cap": (
        "slope * tanh_slope(value * (1.0 / cap))",
        "slope * tanh_slope(value * (1.0 / cap)) / cap",
    ),
    "slope_from_the_rounded_output": (
        "slope * tanh_slope(value * (1.0 / cap))",
        "slope * (1.0 - tanh(value / cap).to(dx.dtype.element_ty).to(tl.float32)"
        " * tanh(value / cap).to(dx.dtype.element_ty).to(tl.float32))",
    ),
    "slope_as_a_difference": (
        "return 4.0 * shrunk * part * part",
        "ratio = (1.0 - shrunk) * part\n    return 1.0 - ratio * ratio",
    ),
    "upstream_gradient_ignored": (
        "slope * tanh_slope(value * (1.0 / cap))",
        "tanh_slope(value * (1.0 / cap))",
    ),
    "upstream_gradient_read_as_if_contiguous": ("dy = dy.contiguous()", "dy = dy"),
}
STREAMS = {
    "first_input_twice": ("tl.load(b + place", "tl.load(a + place"),
    "third_input_left_out": ("if READS > 2:", "if READS > 3:"),
    "second_output_left_out": ("if WRITES > 1:", "if WRITES > 2:"),
    "rounded_after_the_first_addition": (
        "total += tl.load(c + place",
        "total = total.to(y.dtype.element_ty).to(tl.float32)\n"
        "        total += tl.load(c + place",
    ),
    "writes_past_the_end": (
        "tl.store(y + place, total, mask=inside)",
        "tl.store(y + place, total, mask=place <= size)",
    ),
    "sums_at_offsets_in_int32": ("tl.program_id(0).to(tl.int64)", "tl.program_id(0)"),
    "last_element_left_out": ("inside = place < size", "inside = place < size - 1"),
}


def add(kernel, sources: Sequence[Tensor], writes: int) -> list[Tensor]:
    """The sums that add_streams, or a wrong one, writes; behind them stand sevens.

    Only the first outputs of two are returned, as many as `writes`.
    """
    size = sources[0].numel()
    room = [torch.empty((size + 3,), dtype=sources[0].dtype) for _ in range(2)]
    start = FAR if size > FAR else 0  # what lies before is never touched
    for i, each in enumerate(room):
        each[start:] = 7.0
        if i < writes:
            each[start:size] = torch.nan
    grid = (triton.cdiv(size, 64),)
    padded = [*sources, *[sources[0]] * (3 - len(sources))]
    kernel[grid](*padded, *room, size, len(sources), writes, 64)
    for each in room:
        assert (each[size:] == 7).all(), "writes behind its output"
    assert writes == 2 or (room[1] == 7).all(), "writes an output too many"
    return [each[:size] for each in room[:writes]]


def _stream(name: str) -> Callable:
    @cache
    def built():
        change = {"streams.py": STREAMS[name]}
        return mutant("memory_bound", change, Path(mkdtemp()), name)("streams")

    def wrong(sources, writes):
        return add(built().add_streams, sources, writes)

    wrong.__name__ = name
    return wrong


WRONG_SOFT_CAPS = variants(
    "memory_bound",
    {name: ("soft_cap.py", *change) for name, change in SOFT_CAP.items()},
    "soft_cap",
    module="soft_cap",
)
WRONG_STREAMS = [_stream(name) for name in STREAMS]
