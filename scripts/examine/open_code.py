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
    trace, tape = found.trace, found.tape
    whole = stream(block)
    shape = whole.shape
    norms = [c for c in trace.calls if c.path in found.known and c.inside(block)]
    given = {id(t) for c in [block] for t in tracing.tensors(c.raw) if t.shape == shape}
    made = []
    for at, step in enumerate(tape.steps):
        if step.name not in ADDS or not block.start < step.time < block.end:
            continue
        parts = [t for t in tensors_in(step.args) if t.shape == shape]
        on = [t for t in parts if id(t) in given]
        if len(parts) != 2 or not on or any(c.start < step.time < c.end for c in norms):
            continue
        (given_out, *_) = tensors_in(step.out)
        given.add(id(given_out))
        branch = parts[1] if parts[0] is on[0] else parts[0]
        if call := _branch(found, block, norms, at, on[0], branch):
            made.append(call)
    for number, call in enumerate(made):
        call.path = f"{call.parent.path}.branch_{number}"
        trace.calls.append(call)
        for inner in trace.calls:
            if inner.parent is call.parent and inner.inside(call):
                inner.parent = call
    trace.calls.sort(key=lambda c: c.start)
    return bool(made)


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
