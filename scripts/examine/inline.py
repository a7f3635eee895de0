"""Norms that no module holds: functions, and lines of a forward.

Each root or norm function on the tape is led back to what it norms and on to where
gain and bias are applied; the steps between run again as a module of one tensor, and
from there on it is a call as any other.
"""

from scripts.examine import unusual_norms
from scripts.examine.tape import MATRIX, Tape, replayed, tensors_in
from scripts.experiments.atlas.trace import Call, seen

WHOLE = {"rms_norm", "layer_norm", "normalize", "group_norm", "apply"}
ROOTS = {"rsqrt", "sqrt", "norm", "vector_norm", "std", "std_mean", "rsqrt_", "sqrt_"}
POWERS = {"pow", "__pow__", "float_power"}
FORWARD = {  # what follows a root until the norm is done
    *("mul", "__mul__", "__rmul__", "__imul__", "mul_", "multiply", "div", "div_"),
    *("__truediv__", "__rtruediv__", "__itruediv__", "divide", "true_divide"),
    *("add", "__add__", "__radd__", "__iadd__", "add_", "reciprocal", "reciprocal_"),
    *("to", "type", "type_as", "float", "half", "bfloat16", "clamp", "clamp_min"),
    *("expand", "expand_as", "view", "reshape", "unsqueeze", "contiguous", "addcmul"),
    *("__pow__", "pow", "maximum", "max", "clip", "squeeze", "hypot", "einsum"),
}
LAYOUTS = {  # and only where the root's axis was lost; `.mT` is a __get__
    *("__getitem__", "__get__", "transpose", "permute", "movedim", "swapaxes"),
    *("flatten", "unflatten", "broadcast_to", "detach"),
}
SCALES = {"mul", "rmul", "imul", "multiply", "div", "truediv", "itruediv", "divide"}
CASTS = {"to", "type", "type_as", "float", "expand_as", "view_as"}
DEEP = 12  # steps between what is normed and its root, or the root and the result


def find(tape: Tape, trace, known: dict) -> tuple[list[Call], list[tuple]]:
    """(calls of such norms, (path, name, file:line) of roots that stay unread)."""
    found, unread = [], []
    tape.fold(_is_whole)
    norms = [c for c in trace.calls if c.path in known]
    done: set[int] = set()
    for at, step in enumerate(tape.steps):
        if not _is_root(step) or any(c.start < step.time < c.end for c in norms):
            continue
        if not any(id(t) in tape.values for t in tensors_in(step.args)):
            continue
        parent = innermost(trace, step.time)
        if parent is None or at in done or of_weight(parent.path):
            continue
        call = _norm_at(tape, at, parent, done)
        if call is not None:
            found.append(call)
        elif _of_rows(step, parent):
            unread.append((parent.path, step.name, step.where))
    _name(found, trace)
    return found, list(dict.fromkeys(unread))


def of_weight(path: str) -> bool:
    """Whether a module is torch's parametrization of a weight: no norm of a stream."""
    return ".parametrizations." in path


def _is_whole(step) -> bool:
    """Whether a function with a backward of its own is a norm of its first tensor."""
    source = next((t for t in tensors_in(step.args) if t.is_floating_point()), None)
    target = next((t for t in tensors_in(step.out) if source is not None), None)
    if target is None or source.ndim < 2 or target.shape != source.shape:
        return False
    alone = Tape({})
    alone.steps, alone.made = [step], {id(target): 0}
    alone.values = {id(source), id(target)}
    module = replayed(alone, source, target, 0)
    return module is not None and _read(module, source) is not None


def _is_root(step) -> bool:
    if step.name in WHOLE | ROOTS:
        return True
    power = step.args[1] if len(step.args) > 1 else step.kwargs.get("exponent")
    return step.name in POWERS and power in (-0.5, 0.5)


def _of_rows(step, parent: Call) -> bool:
    """Whether a root is one of rows: one number each, or a norm function's rows."""
    if step.name in WHOLE:
        return step.name != "apply"  # no norm, or inside of a module that is one
    (out, *_) = tensors_in(step.out)
    (given, *_) = tensors_in(step.args)
    if step.name in ("norm", "vector_norm", "std", "std_mean"):
        return given.ndim > 2 and given.shape[-1] >= 8 and out.numel() > 1
    rows = [s.shape[:-1] for s in parent.inputs]
    kept = out.ndim > 2 and out.shape[-1] == 1  # keepdim
    return out.numel() > 1 and (kept or out.shape in rows)


def innermost(trace, time: float):
    """The call that was running at a time, none inside of it."""
    inside = [c for c in trace.calls if c.start < time < c.end]
    return max(inside, key=lambda c: c.start, default=None)


def _norm_at(tape: Tape, at: int, parent: Call, done: set) -> Call | None:
    """The norm that a step belongs to, as a call inside ``parent``."""
    import torch

    step = tape.steps[at]
    best = None
    for source in _sources(tape, at):
        for last, target in _targets(tape, at, source.shape):
            module = replayed(tape, source, target, last, 4 * DEEP)
            kind = module and _read(module, source)
            if not kind:
                break
            centred = kind.startswith("LayerNorm")
            better = best is None or (centred and not best[0])
            if better or best[3] is source:
                best = (centred, last, target, source, module)
    if best is None:
        return None
    _, last, target, source, module = best
    own = {id(s) for s in tape.slice(source, target, last)}
    done |= {i for i in range(at, last + 1) if id(tape.steps[i]) in own}
    call = Call("", module, parent, tape.steps[last].time, raw=((source,), {}))
    call.inputs, call.outputs = [seen(source)], [seen(target)]
    call.end = call.start + 0.5
    call.whole = step.name in WHOLE - {"apply"}
    call.called = step.around or step.name.strip("_")
    module.where = step.where
    with torch.no_grad():
        again = module(source.detach())
    stale = not torch.allclose(again, target.detach(), rtol=1e-3, atol=1e-5)
    return None if stale else call


def _read(module, source) -> str | None:
    """The kind of norm that a replayed part is; None if it is none."""
    import torch

    from snippets.norm_probe import behaviour as probes

    x = unusual_norms._numbers(source.shape)
    try:
        with torch.no_grad():
            _, _, bare = probes.bare_norm(module, x)
            if kind := probes.kind_of(bare, x):
                return kind[0]
        said = unusual_norms.odd(module, source.shape)
    except Exception:  # its steps do not run on such a tensor
        return None
    return said and ("LayerNorm" if said.centred else "RMSNorm")


def _sources(tape: Tape, at: int) -> list:
    """The tensors that a root may be of, nearest first."""
    step = tape.steps[at]
    found, todo, visited = [], [*tensors_in((step.args, step.kwargs))], set()
    while todo and len(found) < DEEP:
        tensor = todo.pop(0)
        if id(tensor) in visited or id(tensor) not in tape.values:
            continue
        visited.add(id(tensor))
        if tensor.is_floating_point() and tensor.ndim > 1 and tensor.shape[-1] > 1:
            found.append(tensor)
        made = tape.made.get(id(tensor))
        if made is None or len(visited) > DEEP:
            continue
        before = tape.steps[made]
        given = tensors_in((before.args, before.kwargs))
        own = all(id(t) in tape.values for t in given)  # a row's product with itself
        if before.name in MATRIX and not (own and tensor.numel() < given[0].numel()):
            continue
        todo += given
    if step.name in WHOLE:
        return found[:1]
    return found


def _targets(tape: Tape, at: int, shape):
    """(step, tensor) of results that may be the norm's, nearest first."""
    from torch import nn

    step = tape.steps[at]
    (now, *more) = tensors_in(step.out)
    if step.name in ("std_mean",) and more:
        now = more[0]
    if now.shape == shape and step.name in WHOLE:
        yield at, now
    held, plain = {id(now): now}, step.name in WHOLE - {"normalize"}
    for i in range(at + 1, min(len(tape.steps), at + 1 + 4 * DEEP)):
        after = tape.steps[i]
        given = tensors_in((after.args, after.kwargs))
        mine = [held[id(t)] for t in given if id(t) in held]
        done = any(t.shape == shape for t in mine)
        turned = after.name in LAYOUTS and not done
        if not mine or not (turned or after.name in FORWARD):
            continue
        if plain and len(given) == 1 and after.name.strip("_") in SCALES:
            return  # a factor of q, say: no part of a function that is whole
        casts = after.name in CASTS
        others = [t for t in given if id(t) not in held and not casts]
        if done and any(id(t) in tape.values for t in others):
            return  # a residual, or a scale that depends on the input
        adds = after.name.strip("_") in ("add", "radd", "iadd")
        if done and adds and not all(isinstance(t, nn.Parameter) for t in others):
            return
        (now, *_) = tensors_in(after.out)
        held = (held if turned else {}) | {id(now): now}
        if now.shape == shape:
            yield i, now


def _name(calls: list[Call], trace) -> None:
    """Give each its path: its function's name, numbered where it is called again."""
    taken = {c.path for c in trace.calls}
    for call in sorted(calls, key=lambda c: c.start):
        path = name = f"{call.parent.path}.{call.called}".lstrip(".")
        number = 2
        while path in taken:
            path, number = f"{name}_{number}", number + 1
        taken.add(path)
        call.path = path


def modulated(tape: Tape, trace, known: dict) -> None:
    """Let a norm end behind a scale and a shift that do not come from its input.

    Adaptive norms take them from a condition; each is smaller than what it weighs.
    """
    for call in trace.calls:
        if call.path not in known or not call.outputs:
            continue
        now, at = tape.step_of(call.out)
        if now is None:
            continue
        size, held, end = now.numel(), id(now), None
        for step in tape.steps[at + 1 : at + 1 + 4 * DEEP]:
            given = tensors_in((step.args, step.kwargs))
            if all(id(t) != held for t in given):
                continue
            small = all(t.numel() < size for t in given if id(t) != held)
            if step.name not in WEIGHS or len(given) < 2 or not small:
                break
            (now, *_) = tensors_in(step.out)
            held, end = id(now), step
        if end is not None and now.shape == call.out.shape:
            call.outputs = [seen(now), *call.outputs[1:]]


WEIGHS = {
    *("mul", "__mul__", "__rmul__", "add", "__add__", "__radd__", "addcmul"),
    *("multiply", "mul_", "add_", "__imul__", "__iadd__"),
}


def see_through(trace, known: dict) -> list:
    """Take away modules that end where a norm inside of them does. Returns their calls.

    Adaptive norms, and norms that add first: the norm itself stands for them.
    """
    gone = []
    for call in list(trace.calls):
        if call.path in known or call.parent is None or call.out is None:
            continue
        same = (
            norm
            for norm in trace.calls
            if norm.path in known
            and norm.inside(call)
            and norm.out.node == call.out.node
        )
        norm = next(same, None)
        inner = (c for c in trace.calls if c.inside(call))
        if norm is not None and not any(map(_matrix, inner)):
            if hasattr(norm, "called"):  # a name of its own: that of the module
                known[call.path] = known.pop(norm.path)
                norm.path = call.path
            trace.calls.remove(call)
            gone.append(call)
            for other in trace.calls:
                if other.parent is call:
                    other.parent = call.parent
    return gone


def _matrix(call) -> bool:
    """Whether a call's module weighs a tensor of the stream's kind with a matrix."""
    wide = any(p.ndim > 1 for p in call.module.parameters())
    return wide and any(s.shape[:-1] == call.parent.out.shape[:-1] for s in call.inputs)
