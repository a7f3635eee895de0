"""Branches and streams that no module holds, for blocks that show no equation else."""

from itertools import pairwise

from scripts.examine.inline import innermost
from scripts.examine.tape import replayed, tensors_in
from scripts.experiments.atlas import trace as tracing
from scripts.experiments.atlas.blocks import equal, stream
from scripts.experiments.atlas.trace import Call, Seen, seen

ADDS = {"add", "__add__", "__radd__", "__iadd__", "add_"}


def summed(calls: list) -> list | None:
    """The calls of blocks whose stream is the sum of two tensors handed on.

    None where the blocks do not hand on two. The sums stand for the stream.
    """
    pairs = []
    for call in calls:
        shape = call.out.shape
        given = [s for s in call.inputs if s.shape == shape]
        out = [s for s in call.outputs if s.shape == shape]
        if len(out) != 2 or not 1 <= len(given) <= 2:
            return None
        pairs.append((given, out))
    if not any(len(given) == 2 for given, _ in pairs):
        return None
    for (_, out), (given, _) in pairwise(pairs):
        if len(given) != 2 or not all(
            any(equal(a.value, b.value) for b in out) for a in given
        ):
            return None
    found = []
    for call, (given, out) in zip(calls, pairs, strict=True):
        whole = Call(call.path, call.module, call.parent, call.start, raw=call.raw)
        whole.inputs = [_sum(given)]
        whole.outputs, whole.end = [_sum(out)], call.end
        found.append(whole)
    return found


def _sum(parts: list) -> Seen:
    if len(parts) == 1:
        return parts[0]
    return Seen(parts[0].value + parts[1].value, None)


def add_branches(found, block) -> bool:
    """Add calls for what a block adds to its stream and no module gives.

    Each is replayed from the nearest norm, or from the stream. Whether there are any.
    """
    trace = found.trace
    norms = [c for c in trace.calls if c.path in found.known and c.inside(block)]
    calls = (
        _branch(found, block, norms, at, on, branch)
        for at, on, branch in _sums(found, block, norms)
    )
    made = [call for call in calls if call]
    for number, call in enumerate(made):
        call.path = f"{call.parent.path}.branch_{number}"
        trace.calls.append(call)
        for inner in trace.calls:
            if inner.parent is call.parent and inner.inside(call):
                inner.parent = call
    trace.calls.sort(key=lambda c: c.start)
    return bool(made)


def _sums(found, block, norms: list):
    """(step, stream, branch) of what is added to a block's stream, norms apart."""
    shape = stream(block).shape
    given = {id(t) for t in tracing.tensors(block.raw) if t.shape == shape}
    for at, step in enumerate(found.tape.steps):
        if step.name not in ADDS or not block.start < step.time < block.end:
            continue
        parts = [t for t in tensors_in(step.args) if t.shape == shape]
        on = [t for t in parts if id(t) in given]
        if len(parts) != 2 or not on or any(c.start < step.time < c.end for c in norms):
            continue
        given.add(id(tensors_in(step.out)[0]))
        yield at, on[0], parts[1] if parts[0] is on[0] else parts[0]


def scale_lost(found, block, inside: bool) -> list[tuple[str, str]]:
    """(name, file:line) of what removes the scale where no norm that was read does.

    Each branch is replayed from the stream and, if ``inside``, from what the modules
    on its way give.
    """
    tape, shape = found.tape, stream(block).shape
    inner = [c for c in found.trace.calls if c.inside(block) and c.out is not None]
    norms = [c for c in inner if c.path in found.known]
    ends = {id(tape.step_of(c.out)[0]): c for c in norms}
    sources = [tape.step_of(c.out)[0] for c in inner if inside and c.out.shape == shape]
    sources += [t for t in tracing.tensors(block.raw) if t.shape == shape]
    lost = []
    for at, on, branch in _sums(found, block, norms):
        for source in [on, *sources]:
            if source is None or id(source) in ends:
                continue
            steps = tape.slice(source, branch, at) or []
            passed = {id(t) for s in steps for t in s.given()} & set(ends)
            given = [tape.step_of(ends[i].inputs[0]) for i in passed]
            if all(_unmoved(tape, source, *into) for into in given):
                lost += removes_scale(tape, source, branch, at)
    return list(dict.fromkeys(lost))


def removes_scale(tape, source, target, last: int) -> list[tuple[str, str]]:
    """(name, file:line) of the step that does; empty where the target feels it."""
    if not _unmoved(tape, source, target, last):
        return []
    for at, step in enumerate(tape.steps[: last + 1]):
        for t in step.given():
            whole = t.is_floating_point() and t.numel() >= source.numel()
            if whole and _unmoved(tape, source, t, at):
                return [(step.name.strip("_"), step.where)]
    return []


def _unmoved(tape, source, target, last: int) -> bool:
    """Whether a tensor feels another one, and not its scale."""
    import torch

    if target is None or (module := replayed(tape, source, target, last)) is None:
        return False
    h = source.detach()
    try:
        with torch.no_grad():
            own, twice, half, other = (module(h * by) for by in (1, 2, 0.5, h.cos()))
    except Exception:  # it takes what is not here any more
        return False
    near = 1e-3 * own.abs().max()
    return bool(
        (twice - own).abs().max() <= near
        and (half - own).abs().max() <= near
        and (other - own).abs().max() > near
    )


def _branch(found, block, norms: list, at: int, on, branch) -> Call | None:
    """A call that stands for one branch, unless a module gives it."""
    tape, trace = found.tape, found.trace
    step = tape.steps[at]
    if any(
        c.out is not None
        and c.inside(block)
        and c.out.shape == branch.shape
        and equal(c.out.value, branch.detach())
        for c in trace.calls
    ):
        return None
    parent = innermost(trace, step.time)
    last = next(i for i in range(at, -1, -1) if made_at(tape, i, branch))
    source, begin = on, None
    for norm in sorted(norms, key=lambda c: -c.end):
        if norm.end < step.time and norm.parent is parent:
            tensor, _ = tape.step_of(norm.out)
            if tensor is not None:
                source, begin = tensor, norm.end
                break
    module = replayed(tape, source, branch, last)
    if module is None:
        return None
    steps = tape.slice(source, branch, last)
    call = Call("", module, parent, min(s.time for s in steps if s.time) - 0.25)
    if begin is not None:
        call.start = max(call.start, begin + 0.1)
    inner = [c for c in trace.calls if c.parent is parent and c.end < step.time]
    spans = [c.start for c in inner if c.end > call.start and c not in norms]
    call.start = min([call.start, *(s - 0.25 for s in spans if s > (begin or 0))])
    call.end = step.time - 0.25
    call.raw = ((source,), {})
    call.inputs, call.outputs = [seen(source)], [seen(branch)]
    return call


def made_at(tape, at: int, tensor) -> bool:
    """Whether a step gives a tensor."""
    return any(t is tensor for t in tensors_in(tape.steps[at].out))
