"""The shapes that are timed: (rows, width), in the order of their worth."""

from collections.abc import Sequence

from scripts.measure.kernels.cells import NORMS, Cell

CORE = (
    (16384, 4096), (16384, 2048), (32768, 1024), (8192, 8192), (16384, 16384),
    (8192, 65536), (8192, 4096), (16384, 8192), (8192, 32768), (4096, 131072),
)  # fmt: skip
FIRST = CORE[:5]
ODD = tuple((16384, n) for n in (5120, 2880, 5000, 4099))
CLIFFS = ((4096, 4096), (16384, 16640))  # where inductor changes its mind
NARROW = ((8192 * 32, 128, 32), (8192 * 16, 256, 16), (2048 * 64, 64, 64))
ODD_HEADS = ((8192 * 40, 128, 40),)
FEW_ROWS = (1, 8, 32, 128, 512, 1024, 2048)
TINY = ((12, 16), (6, 24))


def cells(
    operations: Sequence[str],
    shapes: Sequence[tuple[int, int]],
    dtype: str = "bfloat16",
    gain_dtype: str | None = None,
) -> list[Cell]:
    """Every operation at every shape, shape by shape."""
    return [
        Cell(operation, rows, width, dtype, gain_dtype or dtype)
        for rows, width in shapes
        for operation in operations
    ]


def bandwidth(operations: Sequence[str], size: str) -> list[Cell]:
    """Core shapes first, then dtypes, then odd widths and cliffs.

    As many as an H200 measures in one go of less than ten minutes: the elementwise
    control has the first shapes alone, LayerNorm no odd ones.
    """
    if size == "tiny":
        return cells(operations, TINY, "float32")
    first = cells(operations, FIRST)
    if size == "small":
        return first
    norms = [name for name in operations if name != "soft_cap"]
    lean = [name for name in norms if not name.startswith("layer_norm")]
    return [
        *first,
        *cells(norms, CORE[5:]),
        *cells(norms, CORE[:2], "float32"),
        *cells(norms, CORE[:1], "bfloat16", "float32"),
        *cells(norms, CORE[:1], "float16"),
        *cells(lean, ODD + CLIFFS),
    ]


def at(found: Sequence[Cell], shapes: Sequence[tuple[int, int]]) -> set[Cell]:
    """Of these cells those in bfloat16 throughout that have one of the shapes."""
    plain = [cell for cell in found if cell.dtype == cell.gain_dtype == "bfloat16"]
    return {cell for cell in plain if (cell.rows, cell.width) in shapes}


def heads(size: str) -> list[Cell]:
    """QK-Norm: narrow rows, packed and contiguous, with and without RoPE."""
    operations = ("rms_norm", "rms_norm_backward", "qk_norm_rope")
    if size == "tiny":
        shapes, dtype = ((24, 16, 3),), "float32"
    else:
        shapes, dtype = NARROW + ODD_HEADS, "bfloat16"
    return [
        Cell(operation, rows, width, dtype, dtype, count, layout)
        for rows, width, count in shapes
        for layout in ("packed", "contiguous")
        for operation in operations
    ]


def launches(size: str) -> list[Cell]:
    """Few rows: what a decoding step asks for."""
    if size == "tiny":
        return cells(NORMS, ((1, 16), (8, 16)), "float32")
    return cells(NORMS, [(rows, 4096) for rows in FEW_ROWS])


def both_passes(size: str) -> list[Cell]:
    """Forward and backward pass together, at the first shapes."""
    operations = [f"{norm}_forward_backward" for norm in NORMS]
    if size == "tiny":
        return cells(operations, TINY, "float32")
    return cells(operations, FIRST)
