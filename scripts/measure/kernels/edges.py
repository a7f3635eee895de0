"""Edge cases: what a kernel must also get right, and no time is taken of.

No rows and one row, more elements than 32 bits count, rows of zeros, a mean of a
thousand standard deviations, one loud channel, infinities and NaN, memory that does
not begin at a multiple of 16 bytes, rows with gaps between them.
"""

from collections.abc import Sequence

from scripts.measure.kernels.cells import OPERATIONS, Cell

PROVIDERS = ("ours", "torch", "liger")  # torch's shows that the demand is fair
BY_ROW = ("x", "branch", "dy", "dstream")  # inputs of one row a row
SUMS = ("dgain", "dbias")  # outputs that sum over rows
MEAN = 1000.0  # standard deviations
HEADS = 3  # of a token, side by side in a wider projection
OF_HEADS = ("no_rows", "one_row", "zeros", "loud", "not_finite", "misaligned")
AT_ONCE = 2**28  # elements that are answered in float64 at a time


def _plain(inputs: dict) -> None:
    """The shape alone is the case."""


def _zeros(inputs: dict) -> None:
    """Every other row, or head: epsilon alone stands under the root."""
    for name in ("x", "branch"):
        if name in inputs:
            inputs[name][..., ::2, :] = 0.0


def _mean(inputs: dict) -> None:
    inputs["x"] += MEAN


def _loud(inputs: dict) -> None:
    """One channel, with a small gain and slope: a distance sees the others too."""
    inputs["x"][..., 5] = 1e4
    inputs["gain"][5] = 2.0**-12
    if "dy" in inputs:
        inputs["dy"][:, 5] *= 2.0**-12


def _not_finite(inputs: dict) -> None:
    """Three rows, or heads; the others have nothing to do with them."""
    x = inputs["x"]
    for row, value in ((1, "inf"), (3, "nan"), (5, "-inf")):
        place = (row,) if x.dim() == 2 else (0, *divmod(row, x.shape[2]))
        x[(*place, row + 2)] = float(value)


def _misaligned(inputs: dict) -> None:
    """Everything begins one element behind where memory is given out."""
    for name in inputs.keys() & BY_ROW:
        given = inputs[name]
        room = given.new_empty(given.numel() + 1)
        inputs[name] = room[1:].view(given.shape).copy_(given)


def _gaps(inputs: dict) -> None:
    """NaN between the rows, which no kernel has to read."""
    for name in inputs.keys() & BY_ROW:
        rows, width = inputs[name].shape
        room = inputs[name].new_full((rows, width + 8), float("nan"))
        inputs[name] = room[:, :width].copy_(inputs[name])


CASES = {  # name -> what becomes of the inputs
    "no_rows": _plain,
    "one_row": _plain,
    "zeros": _zeros,
    "mean": _mean,
    "loud": _loud,
    "not_finite": _not_finite,
    "misaligned": _misaligned,
    "gaps": _gaps,
    "huge": _plain,
}


def cells(operations: Sequence[str], size: str) -> list[Cell]:
    """Every case of every operation, in both dtypes; the huge ones in one, last.

    Of narrow heads in a projection those of OF_HEADS: its rows have gaps anyway.
    """
    tiny = size == "tiny"
    many, width = (7, 24) if tiny else (37, 4096)
    rows = {"no_rows": 0, "one_row": 1, "huge": 2**31 // width + 4096}
    found = []
    for case in CASES:
        dtypes = ["float32"] if tiny else ["bfloat16", "float32"]
        if case == "huge":
            dtypes = ["bfloat16"] if size == "full" else []
        found += [
            _cell(name, rows.get(case, many), width, dtype, case)
            for dtype in dtypes
            for name in operations
            if case in cases_of(name)
        ]
    return found


def cases_of(operation: str) -> Sequence[str]:
    """The cases that mean something for an operation."""
    if operation == "qk_norm_rope":
        return OF_HEADS
    if operation == "soft_cap":
        return [case for case in CASES if case != "gaps"]  # it takes contiguous tensors
    return list(CASES)


def _cell(operation: str, rows: int, width: int, dtype: str, case: str) -> Cell:
    if operation != "qk_norm_rope":
        return Cell(operation, rows, width, dtype, dtype, case=case)
    shape = HEADS * rows, min(width, 128)  # rows are tokens
    return Cell(operation, *shape, dtype, dtype, HEADS, "packed", case)


def inputs(cell: Cell, seed: int, device: str) -> dict:
    """Those of the operation, with what the case makes of them."""
    found = OPERATIONS[cell.operation].inputs(cell, seed, device)
    if cell.case:
        CASES[cell.case](found)
    return found


def answer(cell: Cell, inputs: dict) -> Sequence:
    """Outputs in float64. Of a huge cell some rows at a time: not all fit."""
    operation = OPERATIONS[cell.operation]
    if cell.elements <= AT_ONCE or inputs["x"].dim() > 2:
        return operation.answer(inputs)
    parts = {
        name: each.split(AT_ONCE // cell.width)
        for name, each in inputs.items()
        if name in BY_ROW
    }
    outputs = None
    for part in zip(*parts.values(), strict=True):
        found = operation.answer(inputs | dict(zip(parts, part, strict=True)))
        outputs = outputs or [[] for _ in found]
        for known, each in zip(outputs, found, strict=True):
            known.append(each)
    return [
        sum(known) if name in SUMS else _joined(known)
        for name, known in zip(operation.outputs, outputs, strict=True)
    ]


def _joined(parts: list):
    import torch

    return torch.cat(parts)


def slack(cell: Cell) -> float:
    """The distance that a kernel with float32 statistics cannot be held below.

    A mean of a thousand standard deviations is rounded to a float32, and what is left
    when it was subtracted is off by so much: near 6e-5 of a standard deviation. Twice
    that is allowed; a mean in 16 bits is thousands of times as far.
    """
    layer = cell.operation.startswith("layer_norm")
    return MEAN * 2.0**-23 if layer and cell.case == "mean" else 0.0
