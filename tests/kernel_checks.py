"""What every kernel must pass.

The tolerances are those of Triton's interpreter, which cuts float32 to bfloat16
where a GPU rounds: up to one unit in the last place, instead of half of one.
"""

import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import wraps
from math import prod

import pytest
import torch
import triton.language as tl
from torch import Tensor

from scripts.site.reading.source import ROOT

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
# The interpreter computes in NumPy, which warns where a GPU is silent.
INTERPRETED = pytest.mark.filterwarnings(
    "ignore:(invalid value|divide by zero|overflow):RuntimeWarning"
)
# ||found - wanted|| / ||wanted||, the norm over the whole tensor.
MOST = {torch.float32: 5e-7, torch.bfloat16: 4e-3, torch.float16: 3e-4}
MATRICES = ((7, 5), (2, 257), (33, 64), (1, 1009))  # for kernels that take rows
SHAPES = ((7, 5), (3, 4, 128), (2, 257), (33, 64), (1, 1009), (5, 1, 96), (40, 2))


def draw(*shape, seed=0, dtype=torch.float32, scale=1.0, offset=0.0) -> Tensor:
    """Normal numbers, the same for the same seed and shape."""
    generator = torch.Generator().manual_seed(seed)
    wide = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return (scale * wide + offset).to(dtype)


def gains(width: int, dtype=torch.float32) -> Tensor:
    """Gains that are not one, of either sign."""
    return draw(width, seed=7, dtype=dtype, scale=0.5, offset=1.0)


def assert_near(
    found: Tensor, wanted: Tensor, what: str, slack: float = 1.0, dtype=None
) -> None:
    """Frobenius distance within what the dtype allows; NaN never passes.

    The dtype is found's, unless a coarser one stood in between.
    """
    assert found.shape == wanted.shape, f"{what} is {tuple(found.shape)}"
    gap = torch.linalg.vector_norm(found.double() - wanted)
    most = slack * MOST[dtype or found.dtype] * torch.linalg.vector_norm(wanted)
    assert float(gap) <= float(most) + 1e-30, f"{what} is off: {gap} > {most}"


def gradients(outputs, inputs: Sequence[Tensor], slopes) -> list[Tensor]:
    """Gradients of the inputs for the given slopes of the outputs."""
    return list(torch.autograd.grad(outputs, inputs, slopes, materialize_grads=True))


def leaves(*tensors: Tensor, dtype=None) -> list[Tensor]:
    """Copies that want a gradient, of the same strides, in their dtype or another."""
    return [
        t.detach().to(dtype or t.dtype, copy=True).requires_grad_() for t in tensors
    ]


def check_gradients(
    function,
    wanted,
    inputs: Sequence[Tensor],
    slack: float = 1.5,
    values: float = 1.0,
    dtype: torch.dtype | None = None,
) -> None:
    """Values and gradients against float64, from the same rounded inputs.

    `function` and `wanted` take the inputs and give a tensor or a tuple of them;
    `wanted` gets them in float64. The inputs keep their place in memory. `values` and
    `slack` are factors on what the dtype allows to outputs and to gradients; `dtype`
    stands for that of every gradient when something coarser was rounded on the way.
    """
    own = [t.detach().requires_grad_() for t in inputs]
    wide = leaves(*inputs, dtype=torch.float64)
    with poisoned():
        found = as_tuple(function(*own))
    slopes = [draw(*y.shape, seed=3 + i, dtype=y.dtype) for i, y in enumerate(found)]
    right = as_tuple(wanted(*wide))
    for i, (y, expected) in enumerate(zip(found, right, strict=True)):
        assert y.dtype == inputs[0].dtype, f"output {i} is {y.dtype}"
        assert_near(y.detach(), expected.detach(), f"output {i}", values)
    with poisoned():
        ours = gradients(found, own, slopes)
    theirs = gradients(right, wide, [slope.double() for slope in slopes])
    for i, (gradient, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert_near(gradient, expected, f"gradient {i}", slack, dtype)


def assert_same_bits(function, other, inputs: Sequence[Tensor]) -> None:
    """Two functions of the inputs agree in every bit of values and gradients."""
    results = []
    for each in (function, other):
        own = leaves(*inputs)
        outputs = as_tuple(each(*own))
        slopes = [draw(*y.shape, seed=3 + i) for i, y in enumerate(outputs)]
        results.append([*outputs, *gradients(outputs, own, slopes)])
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


def assert_nothing_filled(function, inputs: Sequence[Tensor]) -> None:
    """The backward pass makes no tensor of zeros for a gradient that nobody has."""
    own = leaves(*inputs)
    outputs = as_tuple(function(*own))
    slopes = [draw(*y.shape) for y in outputs]
    with torch.profiler.profile(acc_events=True) as profile:
        torch.autograd.grad(outputs, own, slopes)
    assert "aten::zeros" not in {event.key for event in profile.key_averages()}


class _GivesNothing(torch.autograd.Function):
    """The identity, without a gradient for its input."""

    @staticmethod
    def forward(ctx, y: Tensor) -> Tensor:
        return y.clone()

    @staticmethod
    def backward(ctx, slope: Tensor) -> None:
        return None


def check_no_gradient(function, inputs: Sequence[Tensor]) -> None:
    """Behind an operation that gives no gradient the inputs get none, or zeros."""
    own = leaves(*inputs)
    outputs = as_tuple(function(*own))
    sum(_GivesNothing.apply(y).sum() for y in outputs).backward()
    assert not any(t.grad is not None and t.grad.any() for t in own)


def check_one_row_on_a_cpu(module: str, function: str, tensors: int) -> None:
    """Outside the interpreter, too, x may have one dimension and has a gradient."""
    code = f"""if True:
        import torch
        from snippets.{module}.operator import {function}
        own = [torch.randn(8, requires_grad=True) for _ in range({tensors})]
        found = {function}(*own)
        found = found if isinstance(found, tuple) else (found,)
        sum(y.square().sum() for y in found).backward()
        print(*(tuple(t.grad.shape) for t in own))
    """
    assert outside_interpreter(code).split() == ["(8,)"] * tensors


def check_compiled(model, inputs: Sequence[Tensor]) -> None:
    """torch.compile takes the model in one piece and changes no bit of it."""
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    assert_same_bits(model, compiled, inputs)


def check_last_rows(
    norm, wanted, parameters: Sequence[Tensor], first: int, rows: int, slack: float
) -> None:
    """More than 2 ** 31 elements, and values only in the rows from `first` on.

    `norm` and `wanted` take x and the parameters; `slack` is a factor on what is
    allowed to the gradient of x.
    """
    width = len(parameters[0])
    x, dy = (far(first + rows, width) for _ in range(2))
    for i, each in enumerate((x, dy)):
        each[first:] = draw(rows, width, seed=i)
    x.requires_grad_()
    with far_programs():
        y = norm(x, *parameters)
        (dx,) = gradients(y, [x], dy)
    (end,) = leaves(x[first:], dtype=torch.float64)
    right = wanted(end, *(each.double() for each in parameters))
    assert_near(y[first:].detach(), right.detach(), "y")
    (slope,) = gradients(right, [end], dy[first:].double())
    assert_near(dx[first:], slope, "dx", slack)


def outside_interpreter(code: str) -> str:
    """What a program prints that runs without Triton's interpreter."""
    outside = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**outside, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def as_tuple(value) -> tuple:
    return value if isinstance(value, tuple) else (value,)


class poisoned:
    """While it lasts, fresh memory holds NaN: what is never written shows."""

    def __enter__(self):
        self.before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True)
        assert torch.empty(3).isnan().all()

    def __exit__(self, *_):
        torch.use_deterministic_algorithms(self.before)


FAR = 2**31  # elements: from here on an offset does not fit into 32 bits


def far(*shape: int) -> Tensor:
    """Zeros in bfloat16, of which only what is written takes memory.

    An offset that wraps to -2 ** 31 still lands in the same memory, on zeros.
    """
    no_reserve = 0x4000  # MAP_NORESERVE of Linux: address space, not memory
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
    memory = mmap.mmap(-1, 2 * (FAR + prod(shape)), flags=flags)
    return torch.frombuffer(memory, dtype=torch.bfloat16)[FAR:].view(shape)


def far_rows() -> Tensor:
    """(3, 64) in bfloat16, a row every 2 ** 30 elements."""
    x = far(FAR + 64).as_strided((3, 64), (2**30, 1), FAR)
    return x.copy_(draw(3, 64))


@contextmanager
def far_programs():
    """Kernels on tensors of more than 2 ** 31 elements: only their ends are computed.

    Of a grid that the interpreter would never finish the last two programs run, of a
    loop that long the last two rounds, and such outputs are zeros as in `far`.
    """
    from triton.runtime import interpreter

    def last(*bounds):
        every = range(*bounds)
        return every[-2:] if len(every) > 2**16 else every

    def large(make):
        def made(first, *rest, **options):
            shape = getattr(first, "shape", first)
            is_far = not isinstance(shape, int) and prod(shape) > FAR
            return far(*shape) if is_far else make(first, *rest, **options)

        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "range", last, raising=False)
        for name in ("empty", "empty_like"):
            patch.setattr(torch, name, large(getattr(torch, name)))
        yield


NARROW = {  # columns
    "WHOLE_FORWARD": 1024,
    "WHOLE_BACKWARD": 512,
    "PIECE": 256,
    "SINGLE": tl.constexpr(512),
}


def narrowed(check: Callable) -> Callable:
    """The check where rows count as wide from far fewer columns on.

    The kernels for wide rows are the same, and so are the mistakes in them; the
    interpreter has fewer pieces to walk over. The right kernels pass one check at
    the true widths as well: ``narrowed(check).__wrapped__``.
    """

    @wraps(check)
    def narrow(norm):
        with pytest.MonkeyPatch.context() as patch:
            for module in list(sys.modules.values()):
                for name in NARROW.keys() & getattr(module, "__dict__", {}).keys():
                    patch.setattr(module, name, NARROW[name])
            check(norm)

    return narrow
