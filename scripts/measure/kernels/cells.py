"""Operations and shapes: inputs, the bytes that must move, answers in float64.

A cell is one operation at one shape. Bytes are what a fused kernel must read and
write once; gains and statistics are counted, partial sums and caches are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SIZE = {"float32": 4, "bfloat16": 2}
EPS = 1e-6  # given to every provider: torch's default depends on the dtype
BOTH = "_forward_backward"
LARGE = ("x", "branch", "dy", "dstream")  # inputs of one row a row
ELEMENTS = 2**26  # of each tensor that is timed: 134 MB in bfloat16


@dataclass(frozen=True)
class Operation:
    """What is read and written: `mix` counts tensors as large as x."""

    mix: str  # 1R1W ...; both passes together are like no single stream
    gains: int = 0  # vectors as wide as a row
    statistics: int = 0  # float32 numbers a row
    outputs: tuple[str, ...] = ("y",)

    @property
    def streams(self) -> tuple[int, int]:
        """(reads, writes) of the mix."""
        return int(self.mix[0]), int(self.mix[2])


OPERATIONS = {
    "rms_norm": Operation("1R1W", 1, 1),
    "layer_norm": Operation("1R1W", 2, 2),
    "add_rms_norm": Operation("2R2W", 1, 1, ("stream", "y")),
    "rms_norm_backward": Operation("2R1W", 2, 1, ("dx", "dgain")),
    "layer_norm_backward": Operation("2R1W", 3, 2, ("dx", "dgain", "dbias")),
    "add_rms_norm_backward": Operation("3R1W", 2, 1, ("dx", "dgain")),
    "qk_norm_rope": Operation("1R1W", 1, 1),
    "copy": Operation("1R1W"),
}
NORMS = tuple(OPERATIONS)[:3]


@dataclass(frozen=True)
class Cell:
    """One operation at one shape: `rows` vectors of `width` features."""

    operation: str
    rows: int
    width: int
    dtype: str = "bfloat16"
    heads: int = 1  # of QK-Norm, in each token; rows counts tokens times heads
    layout: str = "contiguous"  # or packed: heads of a wider projection

    @property
    def passes(self) -> list[str]:
        """Names of OPERATIONS; a forward and a backward one for both together."""
        norm, both, _ = self.operation.partition(BOTH)
        return [norm, f"{norm}_backward"] if both else [norm]

    @property
    def spec(self) -> Operation:
        return OPERATIONS[self.passes[-1]]

    @property
    def mix(self) -> str:
        """Of the one stream that reads and writes so; none for both passes."""
        return self.spec.mix if len(self.passes) == 1 else ""

    @property
    def backward(self) -> bool:
        return self.operation.endswith("backward")

    def is_of(self, name: str) -> bool:
        """Whether it is of this norm, in any direction."""
        return self.operation.startswith(name)


def shape(width: int) -> tuple[int, int]:
    """As many rows as give ELEMENTS, and no fewer than 8192."""
    return max(8192, ELEMENTS // width), width


def heads(operation: str, width: int, layout: str = "packed") -> Cell:
    """Narrow rows: heads of 8192 tokens, 8192 features of queries each."""
    return Cell(operation, ELEMENTS // width, width, heads=8192 // width, layout=layout)


def moved(cell: Cell) -> int:
    """The bytes of a cell."""
    total = 0
    for each in (OPERATIONS[name] for name in cell.passes):
        vectors = sum(each.streams) * cell.rows + each.gains
        total += vectors * cell.width * SIZE[cell.dtype]
        total += 4 * each.statistics * cell.rows
    if cell.operation == "qk_norm_rope":
        total += 4 * cell.rows // cell.heads * cell.width  # cos and sin, float32
    return total


def of_stream(cell: Cell) -> int:
    """The bytes of the stream that reads and writes tensors as large as the cell's."""
    return sum(cell.spec.streams) * cell.rows * cell.width * SIZE[cell.dtype]


# Inputs -------------------------------------------------------------------


def inputs(cell: Cell, seed: int, device: str) -> dict:
    """Tensors by name."""
    import torch

    shape = (cell.rows, cell.width)
    if cell.heads > 1:
        shape = (1, cell.rows // cell.heads, cell.heads, cell.width)
    dtype = getattr(torch, cell.dtype)
    numbers = torch.Generator(device).manual_seed(seed)

    def drawn(*shape):
        return torch.randn(*shape, generator=numbers, device=device, dtype=dtype)

    if cell.layout == "packed":  # as queries among queries, keys and values
        packed = drawn(*shape[:2], 3 * cell.heads, cell.width)
        found = {"x": packed[..., : cell.heads, :]}
    else:
        found = {"x": drawn(*shape)}
    if cell.operation == "copy":
        return found
    found["gain"] = 1 + drawn(cell.width) / 2
    if cell.is_of("layer_norm"):
        found["bias"] = drawn(cell.width) / 2
    if cell.is_of("add_"):
        found["branch"] = drawn(*shape)
    if cell.operation == "qk_norm_rope":
        from snippets.qk_norm_rope.operator import angles

        found["cos"], found["sin"] = angles(shape[1], cell.width, device=device)
    if cell.backward:
        found["dy"] = drawn(*shape)
    if cell.backward and cell.is_of("add_"):
        found["dstream"] = drawn(*shape)
    return found


# Answers ------------------------------------------------------------------


def _rms(x, gain):
    return x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * gain


def _layer(x, gain, bias):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred * (variance + EPS).rsqrt() * gain + bias


def answer(cell: Cell, inputs: dict) -> Sequence:
    """Outputs in float64."""
    import torch

    if cell.operation == "copy":
        return [inputs["x"].double()]
    added = cell.is_of("add_")
    # The new stream is rounded as a kernel must.
    x = (inputs["x"] + inputs["branch"] if added else inputs["x"]).double()
    vectors = [inputs[k].double() for k in ("gain", "bias") if k in inputs]
    leaves = [x, *vectors]
    if cell.backward:
        leaves = [each.detach().requires_grad_() for each in leaves]
    y = (_layer if cell.is_of("layer_norm") else _rms)(*leaves)
    if cell.backward:
        outputs = (leaves[0], y) if added else (y,)
        slopes = [inputs[k].double() for k in ("dstream", "dy") if k in inputs]
        return torch.autograd.grad(outputs, leaves, slopes)
    if cell.operation == "qk_norm_rope":
        a, b = y.chunk(2, dim=-1)
        cos, sin = (inputs[name].double()[:, None] for name in ("cos", "sin"))
        return [torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)]
    return [x, y] if added else [y]
