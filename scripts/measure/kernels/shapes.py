"""The shapes that are timed: (rows, width), in the order of their worth."""

from collections.abc import Sequence

from scripts.measure.kernels.cells import Cell

CORE = (
    (16384, 4096), (16384, 2048), (32768, 1024), (8192, 8192), (16384, 16384),
    (8192, 65536), (8192, 4096), (16384, 8192), (8192, 32768), (4096, 131072),
)  # fmt: skip
ODD = tuple((16384, n) for n in (2880, 3584, 5120, 6144, 7168, 12288, 5000, 4099))
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
    """Core shapes first, then dtypes, then odd widths and cliffs."""
    if size == "tiny":
        return cells(operations, TINY, "float32")
    core = cells(operations, CORE)
    if size == "small":
        return core[: 6 * len(operations)]
    one = CORE[:1]
    return [
        *core,
        *cells(operations, one, "bfloat16", "float32"),
        *cells(operations, CORE[:6], "float32"),
        *cells(operations, one, "float16"),
        *cells(operations, ODD + CLIFFS),
    ]


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
    operations = ("rms_norm", "layer_norm", "add_rms_norm")
    if size == "tiny":
        return cells(operations, ((1, 16), (8, 16)), "float32")
    shapes = [(rows, width) for width in (4096, 8192) for rows in FEW_ROWS]
    return cells(operations, shapes)
