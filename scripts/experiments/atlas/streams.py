"""Blocks whose residual is several streams side by side (hyper-connections, AltUp).

Every stream of the output is an exact combination of the streams that came in
and of what the branches gave, with coefficients that may differ from token to
token; so is what a norm reads.
"""

from types import SimpleNamespace

from scripts.experiments.atlas.blocks import equal
from scripts.experiments.atlas.branches import label
from scripts.experiments.atlas.tiny import BATCH


def spanned(target, candidates: dict):
    """{name: coefficients of each token} of a combination of independent tensors."""
    import torch

    from snippets.norm_probe.matching import arranged

    y = arranged(target, "token")  # (tokens, d)
    columns = torch.stack([arranged(c, "token") for c in candidates.values()], -1)
    found = (torch.linalg.pinv(columns) @ y[..., None])[..., 0]
    missed = (columns @ found[..., None])[..., 0] - y
    if missed.norm() > 1e-5 * y.norm():
        return None
    return {
        name: found[:, i]
        for i, name in enumerate(candidates)
        if found[:, i].abs().max() > 1e-4
    }


def _axis(shape, model_shape) -> int | None:
    """Where the streams lie, if (batch, tokens) and the width leave one axis."""
    if len(shape) != 4 or shape[-1] != model_shape[-1]:
        return None
    batch, tokens = model_shape[:2]
    if tuple(shape[:2]) == (batch, tokens) and shape[2] not in (batch, tokens):
        return 2
    if tuple(shape[1:3]) == (batch, tokens):
        return 0
    return None


def _own_axis(call, inner) -> tuple[int, int, int] | None:
    """(axis, number, width) of streams that lie along an axis of their own."""
    shape = call.out.shape
    if len(shape) != 4:
        return None
    tokens = {s.shape[:2] for s in call.inputs if len(s.shape) == 3}
    tokens |= {
        c.out.shape[:2]
        for c in inner
        if c.out is not None and len(c.out.shape) == 3 and c.out.shape[0] == BATCH
    }
    axes = {_axis(shape, (*t, shape[-1])) for t in tokens} - {None}
    if len(axes) != 1:
        return None
    (axis,) = axes
    return axis, shape[axis], shape[-1]


def _side_by_side(call, inner) -> tuple[int, int, int] | None:
    """(axis, number, width) of streams that are one long vector, once it is parted."""
    shape = call.out.shape
    widths = {
        c.out.shape[-1]
        for c in inner
        if c.parent is call
        and c.out is not None
        and len(c.out.shape) == 3
        and c.out.shape[:2] == shape[:2]
        and 1 < shape[-1] // c.out.shape[-1] <= 8
        and shape[-1] % c.out.shape[-1] == 0
    }
    if len(shape) != 3 or len(widths) != 1:
        return None
    (width,) = widths
    return 2, shape[-1] // width, width


def spans(numbers: list[int]) -> str:
    """0, 2, 3, 4 -> 0,2…4."""
    parts: list[list[int]] = []
    for n in numbers:
        if parts and parts[-1][-1] == n - 1:
            parts[-1].append(n)
        else:
            parts.append([n])
    return ",".join(f"{p[0]}…{p[-1]}" if len(p) > 1 else f"{p[0]}" for p in parts)


def scaled(seen, streams: list) -> str | None:
    """Which stream a tensor is, weighed channel by channel at most."""
    for j, stream in enumerate(streams):
        if seen.value.numel() == stream.numel():
            ratio = (seen.value / stream).reshape(-1, stream.shape[-1]).double()
            if (ratio.std(0) <= 1e-4 * ratio.abs().amax(0)).all():
                return f"y[{j}]" if equal(seen.value, stream) else f"c⊙y[{j}]"
    return None


def multi_stream(call, trace, known, flat: bool = False):
    """What a block with several streams does; None where there is one stream.

    (equations, [(site, norm)], what was not matched, other norms, the block
    as `attention_norms` wants it).
    """
    if call.out is None:
        return None
    shape = call.out.shape
    given = next((s for s in call.inputs if s.shape == shape), None)
    inner = [c for c in trace.calls if c.inside(call)]
    parted = _side_by_side(call, inner) if flat else _own_axis(call, inner)
    if given is None or parted is None:
        return None
    axis, count, width = parted
    size = given.value.numel() // count

    def split(value):
        if flat:
            value = value.unflatten(-1, (count, width))
        return list(value.movedim(axis, 0))

    state, streams = "x", split(given.value)
    terms: dict = {}  # text -> value of the branches since the last state
    lines, sites, unmatched = [], [], []
    inside_norm = {c.path for c in inner if c.path in known}
    direct = [c for c in inner if c.parent is call]

    def combination(value, bound: str):
        """Text of a value as a combination of streams and branches, or None."""
        candidates = {f"{state}[{j}]": s for j, s in enumerate(streams)} | terms
        found = spanned(value, candidates)
        if not found:
            return None
        parts, mixed = [], False
        for name, values in found.items():
            if name.startswith(f"{state}["):
                mixed = True
            elif values.std() < 1e-4 and abs(float(values.mean()) - 1) < 1e-4:
                parts.append(name)
            else:
                parts.append(f"{bound.replace('A', 'b')}·{name}")
        return " + ".join(([f"Σ_j {bound}·{state}[j]"] if mixed else []) + parts)

    def advance(value, name: str) -> bool:
        """A line for each form that streams take; whether all were matched."""
        forms: dict[str, list[int]] = {}
        for i, stream in enumerate(split(value)):
            text = combination(stream, "A[i,j]")
            if text is None:
                return False
            forms.setdefault(text.replace("b[i,j]", "b[i]"), []).append(i)
        for text, where in forms.items():
            which = "i" if len(forms) == 1 else f"i={spans(where)}"
            lines.append(f"{name}[{which}] = {text}")
        return True

    letters = iter("abdfg")
    produced: dict[int, str] = {}
    readers: dict[str, str] = {}
    for c in sorted(inner, key=lambda c: c.start):
        whole = [s for s in c.inputs if s.shape == shape]
        if c.parent is call and whole:
            value = whole[0].value
            if not equal(value, given.value) and not all(
                equal(a, b) for a, b in zip(split(value), streams, strict=True)
            ):
                name = next(letters)
                if advance(value, name):
                    state, streams, terms = name, split(value), {}
                else:
                    unmatched.append(f"streams before {c.path.rpartition('.')[2]}")
        if c.out is None or c.out.value.numel() != size or c.out.shape[-1] != width:
            continue
        if c not in direct:
            continue
        text_in = None
        if c.inputs and c.inputs[0].value.numel() == size:
            value = c.inputs[0].value
            for text, other in produced.values():
                if equal(other, value):
                    text_in = text
            if text_in is None:
                text_in = combination(value, "c[j]")
        short = c.path[len(call.path) + 1 :]
        if c.path in inside_norm:
            if text_in is None:
                unmatched.append(short)
                text_in = "?"
            text = f"N[{short}]({text_in})"
            sites.append((c, text_in))
        else:
            kind = label(c, call)
            if text_in is None and kind != "PerLayerInput":
                continue
            if text_in is None:  # a chain of modules: what the first of them reads
                chain = [
                    d.inputs[0]
                    for d in direct
                    if d.end < c.start
                    and d.path not in known
                    and d.inputs
                    and d.inputs[0].value.numel() == size
                ]
                if kind == "PerLayerInput" and chain:
                    text_in = scaled(chain[-1], split(call.out.value))
            text = f"{kind}({text_in or 'per-layer input'})"
            for norm, inner_text in sites:
                name = norm.path[len(call.path) + 1 :]
                if text_in == f"N[{name}]({inner_text})":
                    readers.setdefault(norm.path, kind)
        # A norm of a branch replaces it; a branch of a norm replaces the norm.
        for old, value in list(terms.items()):
            if c.inputs and equal(value, c.inputs[0].value):
                del terms[old]
        terms[text] = c.out.value
        produced[c.start] = (text, c.out.value)
    if not advance(call.out.value, "y"):
        unmatched.append("output")
    words = {"Attention": "attention", "FFN": "ffn"}
    found = []
    for norm, text_in in sites:
        if norm.path in readers:
            site = words.get(readers[norm.path], "mixer") + "-in"
        elif text_in.startswith(("Attention(", "FFN(")):
            site = words[text_in.partition("(")[0]] + "-out"
        else:
            site = "other"
        found.append((site, norm))
    placed = {n.path for n, _ in sites}
    others = [c for c in inner if c.path in known and c.path not in placed]
    attention = [c.path for c in direct if label(c, call).endswith("Attention")]
    inside = [c for c in others if c.path.startswith(tuple(f"{p}." for p in attention))]
    inner_block = SimpleNamespace(
        call=call,
        inner_norms=inside,
        inner=inner,
        width=width,
        owner_of=lambda c: next(d for d in direct if c.inside(d)),
    )
    others = [c for c in others if c not in inside]
    missing = "not matched: " + ", ".join(unmatched) if unmatched else ""
    return lines, found, missing, others, inner_block
