"""One forward pass, seen from outside: every call of a module and its tensors.

Values are copied when they pass, since later code may change them in place;
nodes of autograd's graph are kept beside them, so that it can be asked later
what a tensor was computed from.
"""

import inspect
import linecache
import sys
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Seen:
    """A tensor as it passed: its value and its node in autograd's graph."""

    value: object
    node: tuple | None  # (grad_fn, output number)

    @property
    def shape(self):
        return self.value.shape


@dataclass
class Call:
    """One call of one module."""

    path: str
    module: object
    parent: "Call | None"
    start: int
    inputs: list = field(default_factory=list)  # Seen, floating point only
    raw: tuple = ()  # (args, kwargs) as given
    outputs: list = field(default_factory=list)
    end: int = 0

    @property
    def out(self):
        return self.outputs[0] if self.outputs else None

    def inside(self, other: "Call") -> bool:
        """Whether this call happened during the other one."""
        return other.start < self.start and self.end < other.end


@dataclass
class Attended:
    """What a call of the attention function was given, at its time."""

    time: int
    q: Seen
    k: Seen
    v: Seen


@dataclass
class Functional:
    """A function that smells of a norm, called outside of any norm module."""

    name: str
    path: str  # the innermost module's
    where: str  # file:line
    cap: bool  # whether the source speaks of a cap there
    function: object = None  # the function or method around it, and what it was given
    given: dict = field(default_factory=dict)
    site: str = ""  # q, k or qk, by the callers' name of the tensor


@dataclass
class Trace:
    calls: list
    attended: list
    functional: list
    output: object


WATCHED = {
    "rsqrt",
    "sqrt",
    "normalize",
    "norm",
    "vector_norm",
    "layer_norm",
    "rms_norm",
    "group_norm",
    "batch_norm",
    "tanh",
}
FOLDERS = ["transformers/models/"]  # of modeling files; `examine` adds a reader's
NO_CAPS = ("activations.py",)


def tensors(value) -> list:
    """All floating-point tensors in nested arguments, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return []


def seen(tensor) -> Seen:
    node = (tensor.grad_fn, tensor.output_nr) if tensor.grad_fn is not None else None
    return Seen(tensor.detach().clone(), node)


def _frame():
    """The nearest frame of a modeling file on the stack; None if there is none."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith(NO_CAPS):
            return None
        if any(folder in name.replace("\\", "/") for folder in FOLDERS):
            return frame
        frame = frame.f_back
    return None


def line_of() -> str | None:
    """file:line of the modeling file that is running."""
    frame = _frame()
    return frame and f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def _around(frame) -> dict:
    """Line, cap, function, arguments, and which tensor the function is given."""
    import torch

    name, at = frame.f_code.co_filename, frame.f_lineno
    near = "".join(linecache.getline(name, i) for i in range(at - 2, at + 3))
    found = {"where": f"{Path(name).name}:{at}", "cap": "cap" in near.lower()}
    names = inspect.getargvalues(frame)
    given = {n: frame.f_locals[n] for n in names.args if n in frame.f_locals}
    function = frame.f_globals.get(frame.f_code.co_name)
    if (owner := given.pop("self", None)) is not None:
        function = getattr(owner, frame.f_code.co_name, None)
    first = next((v for v in given.values() if isinstance(v, torch.Tensor)), None)
    if not callable(function) or first is None:
        return found
    called, back = "", frame.f_back
    for _ in range(3):
        same = [n for n, v in back.f_locals.items() if v is first] if back else []
        called = next((n for n in same if n[0] in "qk"), called)
        back = back and back.f_back
    site = "qk" if "query" in called and "key" in called else called[:1]
    return found | {"function": function, "given": given, "site": site}


def _of_rows(name: str, args) -> bool:
    """Whether rows are normed: roots of one number each, lengths of eight or more."""
    shape = getattr(args[0], "shape", ()) if args else ()
    if name == "sqrt":
        return len(shape) > 1 and shape[-1] == 1 and shape.numel() > 1
    if name in ("norm", "vector_norm", "normalize"):
        return len(shape) > 1 and shape[-1] >= 8  # of few, the weights of experts
    return True


def follow(model, given: dict, products=None) -> Trace:
    """Run the model once and note every call.

    ``products`` is told of every function that runs, and returns what attended.
    """
    from torch.overrides import TorchFunctionMode

    calls: list[Call] = []
    stack: list[Call] = []
    attended: list[Attended] = []
    functional: list[Functional] = []
    clock = [0]

    def tick() -> int:
        clock[0] += 1
        return clock[0]

    def before(path):
        def hook(module, args, kwargs):
            call = Call(path, module, stack[-1] if stack else None, tick())
            call.inputs = [seen(t) for t in tensors(args) + tensors(kwargs)]
            call.raw = (args, kwargs)
            stack.append(call)
            calls.append(call)

        return hook

    def after(module, args, kwargs, output):
        call = stack.pop()
        call.outputs = [seen(t) for t in tensors(output)]
        call.end = tick()

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            name = getattr(function, "__name__", "").removeprefix("linalg_")
            if name in WATCHED and stack and _of_rows(name, args):
                frame = _frame()
                if frame is not None:
                    found = _around(frame)
                    functional.append(Functional(name, stack[-1].path, **found))
            out = function(*args, **(kwargs or {}))
            if products:
                attended.extend(products(name, args, kwargs or {}, out, tick))
            return out

    hooks, replaced = [], []
    for path, module in model.named_modules():
        hooks.append(module.register_forward_pre_hook(before(path), with_kwargs=True))
        hooks.append(module.register_forward_hook(after, with_kwargs=True))
    for name in {type(m).__module__ for m in model.modules()}:
        file = sys.modules.get(name)
        original = getattr(file, "eager_attention_forward", None)
        if original is None:
            continue

        def attention(module, query, key, value, *args, _original=original, **kwargs):
            attended.append(Attended(tick(), seen(query), seen(key), seen(value)))
            return _original(module, query, key, value, *args, **kwargs)

        replaced.append((file, original))
        file.eager_attention_forward = attention
    try:
        with Watch():
            output = model(**given)
    finally:
        for hook in hooks:
            hook.remove()
        for file, original in replaced:
            file.eager_attention_forward = original
    return Trace(calls, attended, functional, output)


def reads(start: Seen, known: dict, limit: int = 20000) -> tuple[list, set]:
    """(names of the known tensors a tensor was computed from, operations passed).

    known maps a node of autograd's graph to a name; the walk back stops there.
    """
    if start.node is None:
        return [], set()
    found, passed, visited = [], set(), set()
    todo = [start.node]
    while todo and len(visited) < limit:
        node, number = todo.pop()
        if (node, number) in visited:
            continue
        visited.add((node, number))
        if (node, number) in known and (node, number) != start.node:
            name = known[node, number]
            if name not in found:
                found.append(name)
            continue
        passed.add(type(node).__name__)
        todo += [n for n in node.next_functions if n[0] is not None]
    return found, passed
