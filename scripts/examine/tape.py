"""Every torch function of one pass in order, so that a part of it can run again."""

import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass

from scripts.examine import state
from scripts.experiments.atlas import trace as tracing


@dataclass
class Step:
    """One call of a torch function. Its tensors are kept, so that ids are names."""

    name: str
    function: object
    args: tuple
    kwargs: dict
    out: object
    around: str = ""  # the reader's function, if it is no forward
    where: str = ""  # file:line
    time: int = 0
    off: int = 0  # the number of a stretch where the model wants no graph

    def given(self) -> list:
        """The tensors that it gives or changes."""
        return tensors_in((self.out, self.args[:1] if changes(self.name) else ()))


def tensors_in(value) -> list:
    """All tensors in nested arguments and fields of dataclasses, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, f.name) for f in fields(value)]
    elif not isinstance(value, (list, tuple)):
        return []
    return [t for v in value for t in tensors_in(v)]


def reals_in(value) -> list:
    """The same, of real tensors alone."""
    return [t for t in tensors_in(value) if t.is_floating_point()]


class Tape:
    """The steps of a pass; `recording` is entered around it."""

    def __init__(self, given: dict):
        self.steps: list[Step] = []
        self.made: dict[int, int] = {}  # id of a tensor -> the step that made it
        self.values = set(map(id, tensors_in(given)))  # what depends on the input
        self.parameters: set[int] = set()  # ids of those that are read
        self.stretch = 0
        self.applied: list[tuple[int, int, Step]] = []  # autograd.Functions

    @contextmanager
    def recording(self):
        from torch.autograd import Function
        from torch.overrides import TorchFunctionMode

        tape, apply = self, vars(Function)["apply"]

        def applied(cls, *args, **kwargs):
            first, run = len(tape.steps), apply.__get__(None, cls)
            out = run(*args, **kwargs)
            tape.note(run, args, kwargs, out)
            if tape.steps and tape.steps[-1].function is run:
                step = tape.steps[-1]
                step.around = step.around or cls.__name__
                if first + 1 < len(tape.steps):  # or the next module would hold it
                    step.time = tape.steps[-2].time
                tape.applied.append((first, len(tape.steps) - 1, step))
            return out

        class Record(TorchFunctionMode):
            def __torch_function__(self, function, types, args=(), kwargs=None):
                out = function(*args, **(kwargs or {}))
                tape.note(function, args, kwargs or {}, out)
                return out

        Function.apply = classmethod(applied)
        try:
            with Record():
                yield
        finally:
            Function.apply = apply

    def fold(self, whole) -> None:
        """Let an autograd.Function be one step where ``whole`` says so of it.

        Elsewhere its inner steps stand, if there are any: they are read line by line.
        """
        for first, at, step in reversed(self.applied):
            if at >= len(self.steps) or self.steps[at] is not step:
                continue  # inside of one that is folded
            if whole(step):
                del self.steps[first:at]
            elif first < at:
                del self.steps[at]
        self.applied, self.made = [], {}
        for at, step in enumerate(self.steps):
            for t in step.given():
                self.made.setdefault(id(t), at)

    def note(self, function, args, kwargs, out) -> None:
        import torch

        name = getattr(function, "__name__", "").removeprefix("linalg_")
        step = Step(name, function, args, kwargs, out)
        given = step.given()
        if not given or _kept_aside():
            return
        step.around, step.where = _caller()
        if not state.wants_graph() and torch.is_grad_enabled():  # no own backward
            self.stretch += not (self.steps and self.steps[-1].off)
            step.off = self.stretch
        for t in given:
            self.made.setdefault(id(t), len(self.steps))
        taken = tensors_in((args, kwargs))
        self.parameters |= {id(t) for t in taken if isinstance(t, torch.nn.Parameter)}
        mixed = name in MATRIX  # what a matrix gives is no gain
        if mixed or any(id(t) in self.values for t in taken):
            self.values |= {id(t) for t in given}
        self.steps.append(step)

    def stamp(self, time: int) -> None:
        """Date the steps that have no time yet."""
        for step in reversed(self.steps):
            if step.time:
                return
            step.time = time

    def step_of(self, seen) -> tuple:
        """(the tensor of a node and shape that was seen, the step that gave it)."""
        if seen is not None and seen.node is not None:
            for at, step in enumerate(self.steps):
                for t in tensors_in(step.out):
                    if (t.grad_fn, t.output_nr) == seen.node and t.shape == seen.shape:
                        return t, at
        return None, 0

    def slice(self, source, target, last: int) -> list[Step] | None:
        """The steps from one tensor to another, up to step ``last``.

        None if the target does not depend on the source.
        """
        needed, found = {id(target)}, []
        first = self.made.get(id(source), -1)
        for step in reversed(self.steps[first + 1 : last + 1]):
            given = set(map(id, step.given()))
            if id(source) in given and not changes(step.name):
                continue  # a cast that changes nothing hands the source on
            if given & needed:
                found.append(step)
                needed |= set(map(id, tensors_in((step.args, step.kwargs))))
        earlier = [
            step
            for step in self.steps[: first + 1]
            if not any(id(t) in self.values for t in step.given())
        ]
        for step in reversed(earlier):
            if any(id(t) in needed for t in step.given()):
                found.append(step)
                needed |= set(map(id, tensors_in((step.args, step.kwargs))))
        depends, kept = {id(source)}, []
        for step in reversed(found):
            given = set(map(id, tensors_in((step.args, step.kwargs))))
            made = set(map(id, step.given()))
            if given & depends:
                depends |= made
            elif made & self.values:
                continue  # a constant here
            kept.append(step)
        return kept if id(target) in depends else None


def changes(name: str) -> bool:
    """Whether a function of this name changes its first argument."""
    inner = name.strip("_")
    own = name.endswith("_") and not name.endswith("__")
    return own or inner == "setitem" or name in IN_PLACE


MATRIX = {"linear", "matmul", "__matmul__", "bmm", "mm", "addmm", "einsum", "embedding"}
IN_PLACE = {f"__i{n}__" for n in ("add", "sub", "mul", "truediv", "pow")}


def _kept_aside() -> bool:
    """Whether it is no step of the model: whoever watches the pass copies a tensor."""
    frame = sys._getframe(3)
    watchers = (frame, frame.f_back)  # with or without the trace's own mode between
    return any(f.f_code is tracing.seen.__code__ for f in watchers)


def _caller() -> tuple[str, str]:
    """(the reader's function around, file:line); "" for a module's forward."""
    frame = sys._getframe(3)
    while frame is not None:
        name = frame.f_code.co_filename.replace("\\", "/")
        if any(folder in name for folder in tracing.FOLDERS[1:]):
            function = frame.f_code.co_name
            method = "self" in frame.f_locals or not function.isidentifier()
            where = f"{name.rpartition('/')[2]}:{frame.f_lineno}"
            return "" if method else function, where
        frame = frame.f_back
    return "", ""


def _switched_off(tape: Tape, steps: list[Step]) -> set[int]:
    """The stretches without a graph that begin and end among some steps."""
    found = {s.off for s in steps if s.off}
    if found:
        own = set(map(id, steps))
        at = [i for i, s in enumerate(tape.steps) if id(s) in own]
        found -= {s.off for s in tape.steps[: at[0]] + tape.steps[at[-1] + 1 :]}
    return found


def replayed(tape: Tape, source, target, last: int, most: int | None = None):
    """The steps from one tensor to another as a module of one tensor.

    Its parameters are those that the steps read. None if there are no steps, or more
    than ``most``.
    """
    import torch
    from torch import nn

    steps = tape.slice(source, target, last)
    if not steps or len(steps) > (most or len(steps)):
        return None
    off = _switched_off(tape, steps)

    class Function(nn.Module):
        where = steps[-1].where

        def __init__(self):
            super().__init__()
            self.names: dict = {}
            for step in steps:
                for t in tensors_in((step.args, step.kwargs)):
                    if isinstance(t, nn.Parameter) and id(t) not in self.names:
                        name = f"p{len(self.names)}"
                        self.names[id(t)] = name
                        self.register_parameter(name, t)

        def forward(self, h):
            now = {at: getattr(self, name) for at, name in self.names.items()}
            now[id(source)] = h

            def fresh(value):
                if isinstance(value, torch.Tensor):
                    found = now.get(id(value), value)
                    return found.detach() if found is value else found
                if isinstance(value, dict):
                    return {n: fresh(v) for n, v in value.items()}
                if type(value) in (list, tuple):
                    return type(value)(map(fresh, value))
                return value

            for step in steps:
                if changes(step.name):
                    (held,) = tensors_in(step.args[:1])
                    now[id(held)] = fresh(held).clone()
                with torch.no_grad() if step.off in off else nullcontext():
                    out = step.function(*fresh(step.args), **fresh(step.kwargs))
                pairs = zip(tensors_in(step.out), tensors_in(out), strict=True)
                now |= {id(old): new for old, new in pairs}
            return now[id(target)]

    return Function()
