"""Judges the functions of a reader's file, with the standard library alone.

`scripts/site/notebooks/judge.py` puts this text into the file that readers download.
"""

import ast
import ctypes
import faulthandler
import functools
import importlib.util
import inspect
import io
import linecache
import multiprocessing
import os
import re
import signal
import sys
import textwrap
import threading
import traceback
import types
import warnings
from collections.abc import Callable
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path

NEEDED = {
    "numpy": "pip install numpy",
    "triton": "pip install triton, on Linux; no GPU is needed",
    "snippets": "the stub that judge.py writes holds what it takes from there",
}
LIMIT = 20.0  # seconds a check may take
SHOWN = 4  # wrong versions named after a success
CHANGED = "an input was changed in place"
UPDATING = "batch_norm", "image_batch_norm", "numpy_batch_norm"  # inputs 4 and 5
USE = "python judge.py TASK my_file.py writes the stub, and then judges it"
LINES = 5  # of what is wrong
PRINTED = 10  # of what the reader's code prints in a check
SAID: dict[str, str] = {}  # {what is said: in the reader's language}


def said(text: str) -> str:
    """What is said in the reader's language; {} stands for what differs."""
    for template, other in SAID.items():
        pattern = re.escape(template).replace(re.escape("{}"), "(.+?)")
        if match := re.fullmatch(pattern, text, re.DOTALL):
            return other.format(*map(said, match.groups()))
    return text


class AttemptError(Exception):
    """A file that cannot be judged. One line."""


class WrongError(AssertionError):
    """What a check finds wrong: lines, each with its relative error."""

    def __init__(self, parts: list[tuple[str, float]]):
        super().__init__("\n".join(line for line, _ in parts))
        self.parts = parts


class TimeUpError(BaseException):
    """Raised in code that does not come to an end."""


@dataclass(frozen=True)
class Task:
    """What the file has to define, and how that is judged."""

    judged: str
    checks: Callable[[], list]
    rejected: tuple[str, ...]  # wrong versions that the checks reject
    learned: str
    stub: str
    listing: bool = False  # the stub is code with a bug to spot, or with none


def load(path: Path, shown: str):
    """The reader's file as a module."""
    if not path.is_file():
        raise AttemptError(said(f"no such file: {shown}"))
    spec = importlib.util.spec_from_file_location("attempt", path)
    if spec is None or spec.loader is None:
        raise AttemptError(said(f"{shown} is no Python file"))
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        with _limited():
            spec.loader.exec_module(module)
    except TimeUpError:
        raise AttemptError(_late(shown)) from None
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        missing = str(getattr(error, "name", "")).partition(".")[0]
        if missing in NEEDED:
            reason += f" ({said(NEEDED[missing])})"
        raise AttemptError(said(f"{shown} does not import: {reason}")) from None
    finally:
        sys.dont_write_bytecode = before
    return module


def found(attempt, name: str):
    """The function or class of the task, or a module of its form as a function."""
    value = _own(attempt, name)
    if name in FORMS and (value is None or _is_stub(value)):
        class_name, called = FORMS[name]
        if kind := _own(attempt, class_name):
            return lambda *given, **named: called(kind, *given, **named)
    return value if callable(value) else None


def _is_stub(value) -> bool:
    """Whether a function only says that it is not written yet."""
    code = getattr(value, "__code__", None)
    return code is not None and code.co_names == ("NotImplementedError",)


def _own(attempt, name: str):
    """What the reader's file itself defines under a name; imports do not count."""
    value = getattr(attempt, name, None)
    written = getattr(value, "fn", value)  # below @triton.jit
    if getattr(written, "__module__", "") == attempt.__name__:
        return value
    kinds = type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType
    return None if isinstance(value, kinds) else value  # a partial, a script: made here


def _layer_norm(kind, x, gain, bias, *eps):
    return _called(kind(gain.numel(), *eps), [x], weight=gain, bias=bias)


def _rms_norm(kind, x, gain, *eps):
    return _called(kind(gain.numel(), *eps), [x], weight=gain)


def _group_norm(kind, x, groups, gain, bias, *eps):
    return _called(kind(groups, gain.numel(), *eps), [x], weight=gain, bias=bias)


def _add_rms_norm(kind, x, residual, gain, *eps):
    return _called(kind(gain.numel(), *eps), [x, residual], weight=gain)


def _masked_batch_norm(kind, x, mask, gain, bias, *eps):
    return _called(kind(gain.numel(), *eps), [x, mask], weight=gain, bias=bias)


def _batch_norm(kind, x, gain, bias, mean, var, training, *rest):
    module = kind(gain.numel(), **dict(zip(("momentum", "eps"), rest, strict=False)))
    module.train(training)
    running = {"running_mean": mean, "running_var": var}
    y = _called(module, [x], weight=gain, bias=bias, **running)
    for name, tensor in running.items():
        if (new := getattr(module, name)) is not tensor:  # not updated in place
            tensor.copy_(new)
    return y


def _qk_norm_attention(kind, q, k, v, q_gain, k_gain):
    module = kind(q_gain.numel())
    _given(module.q_norm, weight=q_gain)
    _given(module.k_norm, weight=k_gain)
    return module(q, k, v)


FORMS = {
    "layer_norm": ("LayerNorm", _layer_norm),
    "rms_norm": ("RMSNorm", _rms_norm),
    "group_norm": ("GroupNorm", _group_norm),
    "add_rms_norm": ("AddRMSNorm", _add_rms_norm),
    "batch_norm": ("BatchNorm", _batch_norm),
    "masked_batch_norm": ("MaskedBatchNorm", _masked_batch_norm),
    "qk_norm_attention": ("QKNormAttention", _qk_norm_attention),
}


def _called(module, inputs, **weights):
    _given(module, **weights)
    return module(*inputs)


def _given(module, **weights) -> None:
    """Put the tensors in the place of the module's parameters and buffers."""
    for name, tensor in weights.items():
        if not hasattr(module, name):
            own = [*dict(module.named_parameters()), *dict(module.named_buffers())]
            has, kind = ", ".join(own) or "nothing", type(module).__name__
            words = said(f"{kind} has no {name}: call it so (it has {has})")
            raise WrongError([(words, float("inf"))])
        delattr(module, name)
        setattr(module, name, tensor)


def problems(attempt, name: str, check) -> list[tuple[str, float]]:
    """What a check finds wrong, in words, each with its relative error.

    A kernel runs in a child process: one that writes anywhere ends only that.
    """
    judged = found(attempt, name)
    if hasattr(judged, "fn") and hasattr(os, "fork"):
        return _in_child(attempt, name, judged, check)
    return _problems(attempt, name, judged, check)


class _Few(io.TextIOBase):
    """What the reader's code prints, as far as it is short."""

    def __init__(self, out):
        self.out, self.left = out, PRINTED

    def write(self, text: str) -> int:
        for line in text.splitlines(keepends=True):
            if self.left > 0:
                self.out.write(line)
            self.left -= line.endswith("\n")
            if self.left == 0 and line.endswith("\n"):
                self.out.write("...\n")
        return len(text)


def _noting(judged, name: str):
    """What is judged, stopped where it changes an input; and its last arguments.

    A check may compute what it expects from the inputs after the call.
    """
    last: dict[str, object] = {}
    if isinstance(judged, type):
        return _built(judged) if hasattr(judged, "forward") else judged, last
    if hasattr(judged, "fn"):  # a kernel, whose inputs the checks watch
        return judged, last
    try:
        signature = inspect.signature(judged)
    except (TypeError, ValueError):
        signature = inspect.Signature()  # binds nothing

    @functools.wraps(judged)
    def called(*given, **named):
        last.clear()
        with suppress(TypeError):
            last.update(signature.bind(*given, **named).arguments)
        kept = given[:3] + given[5:] if name in UPDATING else given
        with _unchanged([*kept, *named.values()]):
            return judged(*given, **named)

    return called, last


def _built(kind):
    """A class whose modules stop where they change an input."""

    @functools.wraps(kind, updated=())
    def made(*given, **named):
        module = kind(*given, **named)
        forward = module.forward

        def watched(*given, **named):
            with _unchanged([*given, *named.values()]):
                return forward(*given, **named)

        module.forward = watched
        return module

    return made


@contextmanager
def _unchanged(inputs):
    """Raises WrongError where the body changes a tensor or an array of the inputs."""
    before = [(each, _copy(each)) for each in _tensors(inputs)]
    yield
    with sys.modules["torch"]._C.DisableTorchFunction():
        for each, copy in before:
            same = each.shape == copy.shape and each.dtype == copy.dtype
            nothing = (each != each) & (copy != copy) if same else None
            if not same or not ((each == copy) | nothing).all():
                dtype = str(copy.dtype).removeprefix("torch.")
                words = f"{tuple(copy.shape)} {dtype}: {said(CHANGED)}"
                raise WrongError([(words, float("inf"))])


def _tensors(values):
    for each in values:
        if hasattr(each, "shape") and hasattr(each, "dtype"):
            yield each
        elif isinstance(each, dict | list | tuple):
            yield from _tensors(each.values() if isinstance(each, dict) else each)


def _copy(each):
    if not hasattr(each, "detach"):
        return each.copy()
    with sys.modules["torch"]._C.DisableTorchFunction():
        return each.detach().clone()


def _case(last) -> list[str]:
    """The inputs of the call that went wrong, in a line."""
    inputs = []
    for name, each in last.items():
        if hasattr(each, "shape"):
            dtype = str(each.dtype).removeprefix("torch.")
            inputs.append(f"{name} {tuple(each.shape)} {dtype}")
        elif isinstance(each, bool | int | float):
            inputs.append(f"{name} {each}")
    return [said(f"  with {'; '.join(inputs)}")] if inputs else []


def _problems(attempt, name: str, judged, check) -> list[tuple[str, float]]:
    judged, last = _noting(judged, name)
    try:
        with _limited(), redirect_stdout(_Few(sys.stdout)):
            check(judged)
    except WrongError as wrong:
        return [(f"{name}: {line}", size) for line, size in wrong.parts]
    except TimeUpError as error:
        lines = [_late(name), *_lines(error, attempt)]
        return [("\n".join(lines), float("inf"))]
    except AssertionError as wrong:
        if told := str(wrong).splitlines():
            return [(f"{name}: {line}", float("inf")) for line in told]
        what = f"{name}: {said('an assertion of its own fails')}"
        lines = [what, *_case(last), *_lines(wrong, attempt)]
        return [("\n".join(lines), float("inf"))]
    except SystemExit as error:
        lines = [said(f"{name} ends the program"), *_lines(error, attempt)]
        return [("\n".join(lines), float("inf"))]
    except Exception as error:
        while error.__cause__:  # Triton's interpreter wraps what a kernel raises
            error = error.__cause__
        if isinstance(error, NotImplementedError):
            return [(said(f"{name} is not written yet"), float("inf"))]
        what, *lines = raised(error, attempt).splitlines()
        lines = [f"{name}: {what}", *_case(last), *lines]
        return [("\n".join(lines), float("inf"))]
    return []


def _late(name: str) -> str:
    return said(f"{name} does not come to an end: stopped after {LIMIT:g} s")


@contextmanager
def _limited():
    """Raises TimeUpError in a body that runs too long."""
    thread = ctypes.c_ulong(threading.get_ident())
    error = ctypes.py_object(TimeUpError)
    stop = ctypes.pythonapi.PyThreadState_SetAsyncExc
    timer = threading.Timer(LIMIT, stop, (thread, error))
    timer.daemon = True
    timer.start()
    leave, os._exit = os._exit, sys.exit  # or the judge would be gone without a word
    try:
        yield
    finally:
        os._exit = leave
        timer.cancel()


def _in_child(attempt, name: str, judged, check) -> list[tuple[str, float]]:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def work():
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the last words of the C library
        sys.modules["torch"].set_num_threads(1)  # the parent's threads are not here
        there.send(_problems(attempt, name, judged, check))

    child = context.Process(target=work, daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are threads
        child.start()
    there.close()
    try:
        if here.poll(LIMIT + 5):
            return here.recv()
        child.kill()
        return [(_late(name), float("inf"))]
    except EOFError:
        child.join()
        reason = signal.Signals(-child.exitcode).name if child.exitcode < 0 else "exit"
        died = f"{name} ends its process ({reason}): it leaves the memory it was given"
        return [(said(died), float("inf"))]


def raised(error: BaseException, attempt) -> str:
    """What went wrong, and the reader's lines that led to it."""
    what = f"{type(error).__name__}: {error}"
    if lines := _lines(error, attempt):
        return "\n".join([what, *lines])
    return said(f"does not take or return what the stub says: {what}")


def _lines(error: BaseException, attempt) -> list[str]:
    lines = []
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_globals is vars(attempt):
            line = linecache.getline(frame.f_code.co_filename, number)
            lines.append(said(f"  line {number}: {line.strip()}"))
    return list(dict.fromkeys(lines))  # a recursion is told once


def main(arguments: list[str], tasks: dict[str, Task]) -> int:
    """0 if all is right or nothing was to judge, 1 if something is wrong, else 2."""
    if not arguments or {"-h", "--help"} & {*arguments}:
        print(said("tasks:"), *tasks)
        print(said(USE))
        return 0
    *names, shown = sorted(arguments, key=lambda each: each.endswith(".py"))
    try:
        return _judged(names, Path(shown), shown, tasks)
    except AttemptError as error:
        print(f"judge.py: {error}")
        return 2


def _judged(names: list[str], path: Path, shown: str, tasks: dict[str, Task]) -> int:
    for name in [*names, *([] if path.suffix == ".py" else [shown])]:
        if name not in tasks:
            raise AttemptError(said(f"no task {name}; there are {', '.join(tasks)}"))
    if path.suffix != ".py":
        raise AttemptError(said(f"which file? python judge.py {shown} my_file.py"))
    if names and not path.exists():
        path.write_text("\n\n\n".join(tasks[name].stub for name in names), "utf-8")
        print(said(f"wrote the stub to {shown}; write its body and run this again"))
        return 0
    attempt = load(path, shown)
    chosen = names or [n for n in tasks if found(attempt, tasks[n].judged)]
    for name in [n for n in chosen if not found(attempt, tasks[n].judged)]:
        words = f"{shown} defines no {tasks[name].judged}"
        own = [n for n, value in vars(attempt).items() if callable(value)]
        if own := [n for n in own if n[0] != "_" and _own(attempt, n)]:
            words += f" (it has {', '.join(own)})"
        raise AttemptError(said(words))
    if not chosen:
        raise AttemptError(said(f"{shown} defines nothing of {', '.join(tasks)}"))
    return max([_verdict(attempt, name, tasks[name]) for name in chosen])


def judge_cells(name: str, tasks: dict[str, Task], sound: bool) -> None:
    """Judges what the cells of a notebook define. sound: a listing has no fault."""
    attempt, task = sys.modules["__main__"], tasks[name]
    if not found(attempt, task.judged):
        print(said(f"no {task.judged} yet: run its cell first"))
    elif task.listing and not sound and _as_it_came(attempt, task):
        came = f"{name} is as it came. Change the line that is wrong; or say that"
        print(said(came))
        print(said(f'nothing is: check("{name}", sound=True)'))
    else:
        _verdict(attempt, name, task)


def _as_it_came(attempt, task: Task) -> bool:
    whole = ast.parse(task.stub)
    pieces = [ast.Module([node], []) for node in whole.body]  # as IPython compiles
    return any(
        _does(getattr(attempt, task.judged)) == _does(_defined(task.judged, modules))
        for modules in (pieces, [whole])
    )


def _defined(name: str, modules: list[ast.Module]):
    given = {"__name__": "listing"}
    for module in modules:
        exec(compile(module, "<listing>", "exec"), given)
    return given[name]


def _does(thing):
    """What a function or a class says to do, wherever it stands."""
    if isinstance(thing, type):
        return {n: _does(v) for n, v in vars(thing).items() if inspect.isroutine(v)}
    code = getattr(inspect.unwrap(thing), "__code__", thing)
    if not inspect.iscode(code):
        return code
    return code.co_code, code.co_names, [*map(_does, code.co_consts)]


def _other_inputs(attempt, task: Task) -> list[str]:
    """That a function cannot be called as the stub's is, in a line."""
    value = getattr(attempt, task.judged, None)
    functions = [n for n in ast.parse(task.stub).body if isinstance(n, ast.FunctionDef)]
    wanted = [n.args for n in functions if n.name == task.judged]
    if not wanted or not isinstance(value, types.FunctionType) or _is_stub(value):
        return []
    names = [each.arg for each in wanted[0].args]
    own = list(inspect.signature(value).parameters)
    moved = any(n in names and names.index(n) != own.index(n) for n in own)
    try:
        inspect.signature(value).bind(*names)
    except TypeError:
        moved = True
    words = f"{task.judged} takes ({', '.join(own)}), the stub ({', '.join(names)})"
    return [said(words)] if moved else []


def _verdict(attempt, name: str, task: Task) -> int:
    checks = task.checks()
    found: list[tuple[str, float]] = []
    for check in checks:
        found += problems(attempt, task.judged, check)
        if any(line.startswith(_late(task.judged)) for line, _ in found):
            break  # the others would wait as long
    found.sort(key=lambda part: -part[1])  # the largest error first
    # What stops at one of the reader's lines is told once.
    told = {line.rpartition("\n  ")[2]: line for line, _ in reversed(found)}
    if wrong := list(reversed(told.values())):
        changed = [line for line in wrong if line.endswith(said(CHANGED))]
        wrong = _other_inputs(attempt, task) + (changed[:1] or wrong)
        print(*wrong[:LINES], sep="\n")
        if wrong[LINES:]:
            print(said(f"... and {len(wrong[LINES:])} more"))
        return 1
    some = said(", ").join(task.rejected[:SHOWN])
    which = f", which reject {len(task.rejected)} wrong versions ({some}, ...)"
    passed = said(f"{name} is right: it passes {len(checks)} checks")
    print(passed + said(which) * bool(some))
    width = 40 if SAID else 80  # a Chinese character is as wide as two letters
    lines = textwrap.wrap(task.learned, width)
    print(textwrap.indent("\n".join(lines), "  "))
    return 0
