"""Attention's heads: cut and merged where the tokens are, and normed one by one."""

from scripts.examine import flow, unusual_norms
from scripts.examine.tape import replayed, tensors_in


def misplaced(found, attended) -> str | None:
    """The module whose heads are cut or merged by a view where a transpose belongs.

    Token j then lies in rows (head, row) = divmod(j · heads + k, tokens).
    """
    call = _module_of(found, attended)
    q, at = found.tape.step_of(attended.q)
    if call is None or q is None or q.ndim != 4:
        return None
    _, heads, tokens, _ = q.shape
    shape = call.out.shape
    given = [t for t in tensors_in(call.raw) if t.shape == shape]
    if heads < 2 or shape[0] != q.shape[0] or shape[1] != tokens or not given:
        return None
    j = tokens // 2
    if (cut := replayed(found.tape, given[0], q, at)) is not None:
        rows = {tuple(r) for r in _moved(cut, given[0], (0, j))[0].nonzero().tolist()}
        if rows == {divmod(j * heads + k, tokens) for k in range(heads)}:
            return call.path
    out, last = found.tape.step_of(call.out)
    if out is None or (merge := replayed(found.tape, q, out, last)) is None:
        return None
    rows = {r for (r,) in _moved(merge, q, (0, slice(None), j))[0].nonzero().tolist()}
    expected = {(h * tokens + j) // heads for h in range(heads)}
    return call.path if rows == expected else None


def across(found, norm, attended, side: str) -> bool:
    """Whether a norm of q or k runs over the heads, feature by feature."""
    start, _ = found.tape.step_of(norm.out)
    tensor, at = found.tape.step_of(getattr(attended, side))
    if start is None or tensor is None or tensor.ndim != 4:
        return False
    if start is tensor:
        return False
    module = replayed(found.tape, start, tensor, at)
    if module is None:
        return False
    place = (0,) * (start.ndim - 1)
    changed = _change(module, start, place)
    features = changed.flatten(0, -2).any(0).sum().item()
    return 0 < features <= 2 < start.shape[-1]  # RoPE makes two of one


def turned(found, block, norm) -> bool:
    """Whether a norm's rows have the lengths of a projection's, and other values.

    That is a rotation; its angles may be rounded, to bfloat16 say.
    """
    import torch

    given = norm.inputs[0].value
    width = given.shape[-1]
    lengths = given.reshape(-1, width).norm(dim=-1).sort().values
    for call in found.trace.calls:
        out = call.out.value if call.out is not None else None
        near = call.inside(block) and call.end < norm.start
        if out is None or not near or out.numel() != given.numel():
            continue
        if torch.isin(given.flatten(), out.flatten()).double().mean() > 0.9:
            return False
        others = out.reshape(-1, width).norm(dim=-1).sort().values
        if bool(((others - lengths).abs() < 0.004 * lengths).all()):
            return True
    return False


def _module_of(found, attended):
    """The innermost call around that gives a tensor of the stream's kind."""
    width = found.lists[-1][1][-1].out.shape[-1]
    around = [
        c
        for c in found.trace.calls
        if c.start < attended.time < c.end
        and c.out is not None
        and len(c.out.shape) == 3
        and c.out.shape[-1] == width
    ]
    return max(around, key=lambda c: c.start, default=None)


def _change(module, source, place):
    """Where a result changes if the source does at one place."""
    import torch

    with torch.no_grad():
        before = module(source.detach())
        other = source.detach().clone()
        other[place] += unusual_norms._numbers(other[place].shape)
        after = module(other)
    return (after - before).abs() > flow.NOISE * before.abs().max()


def _moved(module, source, place):
    """The same, by row."""
    return _change(module, source, place).any(-1)
