"""Layers that no module holds: the list's modules are called by whoever owns it."""

from scripts.experiments.atlas.trace import Call


def joined(trace, model, path: str) -> list[Call]:
    """A call for each entry of the list at ``path``, as if a module held the layer.

    It begins with the first call inside the entry, which reads the stream, and ends
    where the next entry begins; the last holds as many calls as the one before it.
    Empty if the entries do not follow each other.
    """
    groups: dict[str, list] = {}
    for call in trace.calls:
        if call.path.startswith(f"{path}."):
            groups.setdefault(call.path[len(path) + 1 :].split(".")[0], []).append(call)
    entries = [sorted(calls, key=lambda c: c.start) for calls in groups.values()]
    entries = [e for e in entries if e[0].inputs]
    entries.sort(key=lambda e: e[0].start)
    if not entries:
        return []
    owner = entries[0][0].parent
    ends = [max(c.end for c in e) for e in entries]
    apart = all(
        end < later[0].start for end, later in zip(ends, entries[1:], strict=False)
    )
    if owner is None or not apart or any(e[0].parent is not owner for e in entries):
        return []
    _between(trace, owner, entries)
    ends = [max(c.end for c in e) for e in entries]
    found = []
    for i, (entry, end) in enumerate(zip(entries, ends, strict=True)):
        given = entry[0].inputs[0]
        if i + 1 < len(entries):
            out = entries[i + 1][0].inputs[0]
        else:
            out = _behind(trace, owner, end, given)
        if out is None or out.shape != given.shape or len(given.shape) < 3:
            continue
        name = f"{path}.{entry[0].path[len(path) + 1 :].split('.')[0]}"
        call = Call(name, model.get_submodule(name), owner, entry[0].start - 0.5)
        call.inputs, call.outputs, call.end = [given], [out], end + 0.5
        found.append((call, entry))
    for call, entry in found:
        for inner in entry:
            if inner.parent is owner:
                inner.parent = call
        trace.calls.insert(trace.calls.index(entry[0]), call)
    return [call for call, _ in found]


def _between(trace, owner, entries: list) -> None:
    """Add to each entry what its owner calls on the way to the next: norms, say."""
    own = [c for c in trace.calls if c.parent is owner]
    starts = [e[0].start for e in entries]
    for i, entry in enumerate(entries):
        later = [c for c in own if c.start > starts[i]]
        if i + 1 < len(entries):
            entry += [c for c in later if c.start < starts[i + 1] and c not in entry]
        elif i:
            count = sum(c.parent is owner for c in entries[i - 1])
            entry += [c for c in later[: count - 1] if c not in entry]


def _behind(trace, owner, end: float, given):
    """What the first call behind the last entry reads; else what the owner returns."""
    later = (
        c.inputs[0]
        for c in trace.calls
        if c.start > end and c.inputs and c.inputs[0].shape == given.shape
    )
    at = next(later, None)
    if at is None and owner.out is not None and owner.out.shape == given.shape:
        at = owner.out
    return at


def containers(trace, model) -> list[str]:
    """Lists of entries that are lists themselves: nobody calls these."""
    import torch

    called = {c.path for c in trace.calls}
    lists = (torch.nn.ModuleList, torch.nn.ModuleDict)
    return [
        path
        for path, module in model.named_modules()
        if isinstance(module, torch.nn.ModuleList)
        and len(module)
        and all(isinstance(m, lists) for m in module)
        and not any(f"{path}.{n}" in called for n, _ in module.named_children())
    ]
