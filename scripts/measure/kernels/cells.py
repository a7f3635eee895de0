"""Operations and shapes: inputs, the bytes that must move, answers in float64.

A cell is one operation at one shape. Bytes are what a fused kernel must read and
write once; gains, statistics and partial sums are counted, caches are not.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

NORMS = ("rms_norm", "layer_norm", "add_rms_norm")
SIZE = {"float32": 4, "bfloat16": 2, "float16": 2}
EPS = 1e-6  # given to every provider: torch's default depends on the dtype


@dataclass(frozen=True)
class Cell:
    """One operation at one shape: `rows` vectors of `width` features."""

    operation: str
    rows: int
    width: int
    dtype: str = "bfloat16"
    gain_dtype: str = "bfloat16"
    heads: int = 1  # of QK-Norm, in each token; rows counts tokens times heads
    layout: str = "contiguous"  # or packed: heads of a wider projection
    case: str = ""  # of edges.py: such a cell is gated, and not timed

    @property
    def elements(self) -> int:
        return self.rows * self.width


@dataclass(frozen=True)
class Operation:
    """What a cell's providers compute.

    `inputs(cell, seed, device)` gives a dict of tensors, `answer(inputs)` the
    outputs in float64, `moved(cell)` bytes, `formula` how they are counted, `mix`
    the tensors of full size that are read and written.
    """

    name: str
    mix: str  # 1R1W ...; empty if no single stream reads and writes so
    formula: str
    inputs: Callable
    answer: Callable
    moved: Callable[[Cell], int]
    outputs: tuple[str, ...]


def _draw(shape, dtype, seed, device, scale=1.0, offset=0.0):
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    values = torch.randn(shape, generator=generator, device=device)
    return (scale * values + offset).to(getattr(torch, dtype))


def _tokens(cell: Cell, seed: int, device: str):
    shape = (cell.rows, cell.width)
    if cell.heads > 1:
        shape = (1, cell.rows // cell.heads, cell.heads, cell.width)
    if cell.layout == "packed":  # as queries among queries, keys and values
        *outer, heads, width = shape
        packed = _draw((*outer, 3 * heads, width), cell.dtype, seed, device)
        return packed[..., :heads, :]
    return _draw(shape, cell.dtype, seed, device)


def _gain(cell: Cell, seed: int, device: str, offset: float = 1.0):
    return _draw(cell.width, cell.gain_dtype, seed + 1, device, 0.5, offset)


def _norm_inputs(cell: Cell, seed: int, device: str) -> dict:
    x = _tokens(cell, seed, device)
    return {"x": x, "gain": _gain(cell, seed, device)}


def _bias_inputs(cell: Cell, seed: int, device: str) -> dict:
    bias = {"bias": _gain(cell, seed + 1, device, 0.0)}
    return _norm_inputs(cell, seed, device) | bias


def _with_slope(inputs: Callable) -> Callable:
    def made(cell: Cell, seed: int, device: str) -> dict:
        found = inputs(cell, seed, device)
        dy = _draw(found["x"].shape, cell.dtype, seed + 5, device)
        return found | {"dy": dy}

    return made


def _add_inputs(cell: Cell, seed: int, device: str) -> dict:
    branch = _draw((cell.rows, cell.width), cell.dtype, seed + 3, device)
    return _norm_inputs(cell, seed, device) | {"branch": branch}


def _add_slopes(cell: Cell, seed: int, device: str) -> dict:
    found = _add_inputs(cell, seed, device)
    for i, name in enumerate(("dy", "dstream")):
        found[name] = _draw(found["x"].shape, cell.dtype, seed + 5 + i, device)
    return found


def _rope_inputs(cell: Cell, seed: int, device: str) -> dict:
    from snippets.qk_norm_rope.operator import angles

    found = _norm_inputs(cell, seed, device)
    cos, sin = angles(found["x"].shape[1], cell.width, device=device)
    return found | {"cos": cos, "sin": sin}


def _cap_inputs(cell: Cell, seed: int, device: str) -> dict:
    """Beyond the cap, below it, and so near 0 that all but a series cancels.

    Few are large: where a distance is of the whole, they would hide the others.
    """
    found = _norm_inputs(cell, seed, device)
    found["x"][:, ::256] *= 30.0
    found["x"][:, 1::2] *= 2.0**-12
    return found


def _wide(inputs: dict, *names: str) -> list:
    return [inputs[name].double() for name in names]


def _leaves(inputs: dict, *names: str) -> list:
    return [wide.requires_grad_() for wide in _wide(inputs, *names)]


def _rms(x, gain):
    return x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * gain


def _layer(x, gain, bias):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred * (variance + EPS).rsqrt() * gain + bias


def _rms_answer(inputs: dict) -> tuple:
    return (_rms(*_wide(inputs, "x", "gain")),)


def _layer_answer(inputs: dict) -> tuple:
    return (_layer(*_wide(inputs, "x", "gain", "bias")),)


def _gradients(function: Callable, *names: str) -> Callable:
    def answer(inputs: dict) -> tuple:
        import torch

        leaves = _leaves(inputs, *names)
        return torch.autograd.grad(function(*leaves), leaves, inputs["dy"].double())

    return answer


def _stream(inputs: dict):
    """The new stream, rounded as a kernel must."""
    return (inputs["x"] + inputs["branch"]).double()


def _add_answer(inputs: dict) -> tuple:
    stream = _stream(inputs)
    return stream, _rms(stream, *_wide(inputs, "gain"))


def _add_gradients(inputs: dict) -> tuple:
    """Of the stream, as x and branch have it, and of the gain."""
    import torch

    leaves = _stream(inputs).requires_grad_(), *_leaves(inputs, "gain")
    outputs = leaves[0], _rms(*leaves)
    slopes = [inputs[name].double() for name in ("dstream", "dy")]
    return torch.autograd.grad(outputs, leaves, slopes)


def _rope_answer(inputs: dict) -> tuple:
    import torch

    normed = _rms(*_wide(inputs, "x", "gain"))
    a, b = normed.chunk(2, dim=-1)
    cos, sin = (inputs[name].double()[:, None] for name in ("cos", "sin"))
    return (torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1),)


def _cap_answer(inputs: dict) -> tuple:
    import torch

    return (30.0 * torch.tanh(inputs["x"].double() / 30.0),)


def _bytes(big: int, row: int = 0, column: int = 0) -> Callable[[Cell], int]:
    """big tensors in x's dtype, row float32 numbers a row, column gains."""

    def moved(cell: Cell) -> int:
        gains = column * cell.width * SIZE[cell.gain_dtype]
        return big * cell.elements * SIZE[cell.dtype] + 4 * row * cell.rows + gains

    return moved


def _rope_bytes(cell: Cell) -> int:
    tables = 4 * cell.rows // cell.heads * cell.width  # cos and sin, float32
    return _bytes(2, row=1, column=1)(cell) + tables


OPERATIONS = {
    each.name: each
    for each in (
        Operation(
            "rms_norm", "1R1W", "2 M N s + 4 M + N g",
            _norm_inputs, _rms_answer, _bytes(2, 1, 1), ("y",),
        ),
        Operation(
            "layer_norm", "1R1W", "2 M N s + 8 M + 2 N g",
            _bias_inputs, _layer_answer, _bytes(2, 2, 2), ("y",),
        ),
        Operation(
            "add_rms_norm", "2R2W", "4 M N s + 4 M + N g",
            _add_inputs, _add_answer, _bytes(4, 1, 1), ("stream", "y"),
        ),
        Operation(
            "rms_norm_backward", "2R1W", "3 M N s + 4 M + 2 N g",
            _with_slope(_norm_inputs), _gradients(_rms, "x", "gain"),
            _bytes(3, 1, 2), ("dx", "dgain"),
        ),
        Operation(
            "layer_norm_backward", "2R1W", "3 M N s + 8 M + 3 N g",
            _with_slope(_bias_inputs), _gradients(_layer, "x", "gain", "bias"),
            _bytes(3, 2, 3), ("dx", "dgain", "dbias"),
        ),
        Operation(
            "add_rms_norm_backward", "3R1W", "4 M N s + 4 M + 2 N g",
            _add_slopes, _add_gradients, _bytes(4, 1, 2), ("dx", "dgain"),
        ),
        Operation(
            "qk_norm_rope", "1R1W", "2 M N s + 4 M + N g + 4 T N",
            _rope_inputs, _rope_answer, _rope_bytes, ("y",),
        ),
        Operation(
            "soft_cap", "1R1W", "2 M N s",
            _cap_inputs, _cap_answer, _bytes(2), ("y",),
        ),
    )
}  # fmt: skip


def _both(norm: str) -> Operation:
    """The forward and the backward pass of a norm, as autograd runs them in turn."""
    forward, backward = OPERATIONS[norm], OPERATIONS[f"{norm}_backward"]
    return replace(
        backward,
        name=f"{norm}_forward_backward",
        mix="",
        formula=f"{forward.formula} + {backward.formula}",
        moved=lambda cell: forward.moved(cell) + backward.moved(cell),
    )


OPERATIONS |= {each.name: each for each in map(_both, NORMS)}
