"""Inputs and comparisons of the coding tasks. Failures say the case, not the fix."""

import warnings
from collections.abc import Callable
from contextlib import contextmanager
from functools import wraps

import torch
from torch.overrides import TorchFunctionMode

from tests.snippets.judging import WrongError, said

ONE_ROUNDING = {
    torch.float16: 2**-11 * 1.05,
    torch.bfloat16: 2**-8 * 1.05,
    torch.float32: 1e-5,
    torch.float64: 1e-11,
}
SHAPES = ((7,), (3, 5), (2, 3, 31), (2, 1, 3, 17), (4, 2))
DERIVED = (torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward)
READY = ("layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm")


def numbers(shape, *, offset=0.0, scale=1.0, dtype=torch.float64, seed=0):
    """Random rows of unequal size."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    sizes = 2 ** torch.randn((*shape[:-1], 1), generator=generator, dtype=x.dtype)
    return (scale * (sizes * x + offset)).to(dtype)


def gains(d, *, dtype=torch.float64, seed=0):
    """Far from one, one of them negative."""
    generator = torch.Generator().manual_seed(50 + seed)
    gain = 0.3 + 2 * torch.rand(d, generator=generator, dtype=torch.float64)
    gain[0] *= -1
    return gain.to(dtype)


def with_parameters(module):
    """The module with vectors as parameters that are not what it was born with."""
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            if parameter.ndim == 1:
                parameter.copy_(gains(len(parameter), seed=i))
    return module


def expect(good, case: str, words: str) -> None:
    if not good:
        raise WrongError([(f"{said(case)}: {said(words)}", torch.inf)])


def in_every_dtype(check):
    """A check of one dtype as a check of all, the half ones first.

    It says what is wrong in each that fails, a line a dtype.
    """

    @wraps(check)
    def checks(judged):
        wrong = []
        for dtype in ONE_ROUNDING:
            try:
                check(judged, dtype)
            except WrongError as error:
                wrong += error.parts
        if wrong:
            raise WrongError(wrong)

    return checks


class _NoneReady(TorchFunctionMode):
    """Fails on a call of a norm, or of a gradient, that torch has ready."""

    def __torch_function__(self, call, types, args=(), kwargs=None):
        name = call.__name__.partition(".")[0]
        ready = name.removeprefix("native_").removesuffix("_backward") in READY
        expect(not ready, f"torch's own {name} is called", "write the norm out")
        expect(call not in DERIVED, "autograd is called", "write the gradient out")
        return call(*args, **(kwargs or {}))


class _NoTorch(TorchFunctionMode):
    """Fails on any call of torch."""

    def __torch_function__(self, call, types, args=(), kwargs=None):
        expect(False, f"torch's {call.__name__} is called", "NumPy is all it may use")


def by_hand(check):
    """A check in which torch's own norms are no solution."""

    @wraps(check)
    def checks(judged):
        def called(*given):
            with _NoneReady():
                return judged(*given)

        check(called)

    return checks


def in_numpy(check):
    """A check of tensors as one of arrays.

    bfloat16, which NumPy lacks, goes in as float32 and is rounded on the way out.
    """

    @wraps(check)
    def checks(judged):
        def called(*given):
            arrays = [_array(each) for each in given]
            with warnings.catch_warnings(), _NoTorch():
                warnings.simplefilter("ignore")  # torch overflows in silence
                found = judged(*arrays)
            return _tensor(found, given[0].dtype)

        try:
            check(called)
        except WrongError as wrong:
            parts = [(_of_arrays(line), size) for line, size in wrong.parts]
            raise WrongError(parts) from None

    return checks


def _of_arrays(line: str) -> str:
    """What is said of tensors, said of the arrays that went in."""
    return line.replace("torch.bfloat16", "float32").replace("torch.float", "float")


def _array(given):
    if not isinstance(given, torch.Tensor):
        return given
    return (given.float() if given.dtype == torch.bfloat16 else given).numpy()


def _tensor(found, dtype):
    try:
        y = torch.from_numpy(found)
    except TypeError:
        return found
    return y.to(dtype) if (y.dtype, dtype) == (torch.float32, torch.bfloat16) else y


def by_rows(kernel, x, vectors, eps, columns, case):
    """What a Triton kernel makes of x, one program a row, on the CPU.

    NaN stands around all that it may read, and y is cut out of more NaN: as much as
    a kernel reaches that takes a wrong stride.
    """
    expect(hasattr(kernel, "run"), case, "no kernel: @triton.jit is missing")
    rows, width = x.shape
    edge = (rows + 1) * max(width + 3, columns)
    x = _among_nan(x, width + 3, edge)
    vectors = [_among_nan(each[None], width, edge)[0] for each in vectors]
    nothing = torch.full_like(x, torch.nan, memory_format=torch.contiguous_format)
    y = _among_nan(nothing, width, edge)
    sizes = {"WIDTH": width, "COLUMNS": columns}
    strays: set[str] = set()
    inside = _inside(x, *vectors, y), _inside(y)
    with (
        unchanged(case, x, *vectors),
        warnings.catch_warnings(),
        _kept_within(*inside, columns, strays),
    ):
        warnings.simplefilter("ignore")  # NumPy's, which computes the kernel
        kernel[(rows,)](x, *vectors, y, x.stride(0), eps, **sizes)
    for words in sorted(strays):
        expect(False, case, words)
    memory = y.as_strided((rows * width + 2 * edge,), (1,), 0)
    for outside in (memory[:edge], memory[-edge:]):
        expect(bool(outside.isnan().all()), case, "writes outside of y")
    return y


def _inside(*tensors) -> Callable:
    """Which of the addresses are entries of the tensors."""
    spans = []
    for each in tensors:
        rows = each if each.ndim == 2 else each[None]
        spans.append((each.data_ptr(), each.itemsize, rows.stride(0), rows.shape))

    def inside(addresses):
        found = addresses != addresses
        for first, size, stride, (rows, width) in spans:
            at = (addresses.astype("int64") - first) // size
            row, column = at // stride, at % stride
            found |= (row >= 0) & (row < rows) & (column < width)
        return found

    return inside


@contextmanager
def _kept_within(readable, writable, columns: int, strays: set[str]):
    """Triton's interpreter with loads and stores that touch nothing else."""
    from triton.runtime.interpreter import interpreter_builder as builder

    load, store = builder.create_masked_load, builder.create_masked_store

    def checked_load(pointers, mask, *rest):
        stray = mask.data.astype(bool) & ~readable(pointers.data)
        if stray.any():
            strays.add("reads outside of its inputs")
            mask = type(mask)(mask.data.astype(bool) & ~stray, mask.dtype)
        if pointers.data.size > columns:
            strays.add("a tile is larger than COLUMNS")
        return load(pointers, mask, *rest)

    def checked_store(pointers, value, mask, *rest):
        stray = mask.data.astype(bool) & ~writable(pointers.data)
        if (stray & ~readable(pointers.data)).any():
            strays.add("writes outside of y")
            stray &= ~readable(pointers.data)
            mask = type(mask)(mask.data.astype(bool) & ~stray, mask.dtype)
        return store(pointers, value, mask, *rest)

    builder.create_masked_load = checked_load
    builder.create_masked_store = checked_store
    try:
        yield
    finally:
        del builder.create_masked_load, builder.create_masked_store


def _among_nan(x, stride, edge):
    """x with rows that begin stride apart, and NaN wherever it is not."""
    rows, width = x.shape
    size = rows * stride + 2 * edge
    memory = torch.full((size,), torch.nan, dtype=x.dtype)
    return memory.as_strided((rows, width), (stride, 1), edge).copy_(x)


def close(what, actual, expected, rtol=1e-9, *, atol=0.0, case="", rowwise=True):
    """Entries agree, up to rtol of the row's largest (or of each, not rowwise).

    What is said is the entry with the largest relative error.
    """
    expect(isinstance(actual, torch.Tensor), case, f"{what} is {type(actual).__name__}")
    shapes = tuple(actual.shape), tuple(expected.shape)
    expect(shapes[0] == shapes[1], case, f"{what} is {shapes[0]}, expected {shapes[1]}")
    half = actual.dtype in (torch.float16, torch.bfloat16)
    unit = torch.finfo(actual.dtype).eps / 2 if half else 0.0
    actual, wanted = actual.detach().double(), expected.detach().double()
    size = wanted.abs()
    if rowwise and size.ndim:
        size = size.amax(dim=-1, keepdim=True)
    gap = (actual - wanted).abs()
    good = gap <= atol + rtol * size
    if not bool(good.all()):
        error = torch.where(good, 0.0, gap / size).nan_to_num(torch.inf)
        where = tuple(int(i) for i in torch.unravel_index(error.argmax(), error.shape))
        at = f"[{', '.join(map(str, where))}]" if where else ""
        pair = _shown(float(actual[where]), float(wanted[where]))
        off = f"({int((~good).sum())} of {good.numel()} entries off)"
        words = said(f"{said(what)}{at} is {pair[0]}, expected {pair[1]} {off}")
        worst = float(error[where])
        if worst <= 2.1 * unit:
            words = said(f"one rounding too many: {words}")
        raise WrongError([(f"{said(case)}: {words}", worst)])


def updated(name, now, before, wanted, rtol, case):
    """A buffer that came in holds what is wanted."""
    kept = torch.equal(now, before) and not torch.equal(wanted, before)
    expect(not kept, case, f"{name} is unchanged: an assignment only names a new one")
    close(f"afterwards {name}", now, wanted, rtol, case=case)


def _shown(actual: float, wanted: float) -> tuple[str, str]:
    """Both with six digits, or as many as it takes to see that they differ."""
    for digits in range(6, 18):
        pair = f"{actual:.{digits}g}", f"{wanted:.{digits}g}"
        if pair[0] != pair[1]:
            break
    return pair


def has_dtype(what, actual, dtype, case):
    expect(isinstance(actual, torch.Tensor), case, f"{what} is {type(actual).__name__}")
    expect(actual.dtype == dtype, case, f"{what} is {actual.dtype}, expected {dtype}")


def results(found, names: str, case):
    """The results of a function that returns several, all of them tensors."""
    wanted, kind = names.split(), type(found).__name__
    several = isinstance(found, tuple | list)
    expect(several, case, f"the result is {kind}, not a tuple or a list")
    expect(len(found) == len(wanted), case, f"{len(found)} results, not {len(wanted)}")
    return found


@contextmanager
def unchanged(case, *inputs):
    before = [each.detach().clone() for each in inputs]
    yield
    for each, copy in zip(inputs, before, strict=True):
        same = torch.equal(each.detach(), copy) and each.dtype == copy.dtype
        expect(same, case, "an input was changed in place")


def gradients(y, inputs, grad_y, case):
    """Autograd through the implementation; a cut graph is a failure."""
    expect(isinstance(y, torch.Tensor), case, f"the result is {type(y).__name__}")
    expect(y.requires_grad, case, "no gradient flows through the result")
    found = torch.autograd.grad(y, inputs, grad_y, allow_unused=True)
    for each, name in zip(found, "123456", strict=False):
        expect(each is not None, case, f"no gradient reaches input {name}")
    return found
