"""One architecture as rows: its norms by behaviour, its blocks as equations."""

import inspect
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from scripts.experiments.atlas import tiny
from scripts.experiments.atlas.blocks import (
    MATRIX,
    Block,
    blocks,
    equal,
    loose,
    stream,
)
from scripts.experiments.atlas.branches import label, root_dtype
from scripts.experiments.atlas.streams import multi_stream
from scripts.experiments.atlas.trace import follow

OPEN = (1.2784645, 30.0)  # gates that change nothing: silu, sigmoid of it is 1
CAP = re.compile(r"soft_?cap|logit_?cap|capping")
MULTIPLIER = re.compile(  # factors on the stream, a branch, queries, values or logits
    r"(?<!_dim)_multipliers?$|(residual|embedding|logits?|attention)_?(scaling|scale)$"
    r"|^scale_(emb|depth)$|^emb_scale$|_(alpha|beta)_factor$"
    r"|^(attention_value_scale|qk_scale_factor)$"
)
COLUMNS = (
    "architecture",
    "model_class",
    "layer",
    "layers",
    "status",
    "reason",
    "placement",
    "equations",
    "norms",
    "qk",
    "functional",
    "caps",
    "multipliers",
    "source",
    "notes",
)


def row(architecture: str, **known) -> dict:
    """A row with every column; what is not known is empty."""
    lists = {
        n: [] for n in ("layers", "equations", "norms", "qk", "functional", "caps")
    }
    lists |= {"multipliers": [], "source": [], "notes": []}
    empty = {
        "architecture": architecture,
        "model_class": tiny.class_name(architecture),
        "layer": "",
        "status": "unresolved",
        "reason": None,
        "placement": None,
    }
    known = {**lists, **empty, **known}
    return {name: known[name] for name in COLUMNS}


# Norms ----------------------------------------------------------------------


class _Gate:
    """Stands for a second tensor of the input's shape."""


def _alone(call, gate: float, which: int = 0):
    """(a norm as a module of one tensor, whether it has a gate, a shape to probe).

    ``which`` of its tensors, where it takes and returns several.
    """
    import torch
    from torch import nn

    args, kwargs = call.raw
    shape = call.inputs[which].shape
    gated = False

    def replaced(value, state):
        nonlocal gated
        if not (isinstance(value, torch.Tensor) and value.is_floating_point()):
            return value
        state[0] += 1
        if state[0] == which + 1:
            return Ellipsis
        if value.shape == shape and len(call.outputs) < 2:
            gated = True
            return _Gate
        return value.detach().clone()

    state = [0]
    args = tuple(replaced(a, state) for a in args)
    kwargs = {n: replaced(v, state) for n, v in kwargs.items()}

    class Alone(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = call.module

        def forward(self, h):
            def given(value):
                if value is Ellipsis:
                    return h.clone()
                if value is _Gate:
                    return torch.full_like(h, gate, dtype=torch.float32)
                return value

            out = self.norm(
                *(given(a) for a in args), **{n: given(v) for n, v in kwargs.items()}
            )
            out = out[which] if isinstance(out, tuple) else out
            if out.shape == (*h.shape[:-1], 1):  # it gives the inverse root alone
                return h * out
            return out.reshape(h.shape) if out.numel() == h.numel() else out

    alone = Alone()
    alone.eval()
    return alone, gated, torch.zeros(shape)


def may_be_norm(call) -> bool:
    """Cheap tests before the probes: same rows out, vectors for parameters.

    The last axes may come out as one, and of a row its inverse root alone.
    """
    if not call.inputs or call.out is None:
        return False
    shape, out = tuple(call.inputs[0].shape), tuple(call.out.shape)
    flat = len(out) < len(shape) and shape[: len(out) - 1] == out[:-1]
    same = call.out.value.numel() == call.inputs[0].value.numel()
    if out != shape and not (flat and same) and out != (*shape[:-1], 1):
        return False
    if len(shape) < 2 or shape[-1] < 2 or call.inputs[0].value.numel() < 2 * shape[-1]:
        return False
    parameters = list(call.module.parameters())
    trailing = {shape[-1]}
    for n in reversed(shape[:-1]):
        trailing.add(n * max(trailing))
    return all(p.ndim <= 1 or p.numel() in trailing for p in parameters)


def behaviours(trace) -> dict:
    """By module path: (behaviour, gated) of every module that is a norm."""
    from snippets.norm_probe.behaviour import recognise

    found, paths = {}, set()
    for call in trace.calls:
        if call.path in paths or not may_be_norm(call):
            continue
        paths.add(call.path)
        try:
            behaviour = None
            for gate in OPEN:
                alone, gated, x = _alone(call, gate)
                behaviour = recognise(alone, x)
                if behaviour or not gated:
                    break
        except Exception:  # not a module that takes such a tensor alone
            continue
        if behaviour:
            found[call.path] = (behaviour, gated)
    for twin in _twins(trace, found):
        try:
            alone, _, x = _alone(twin, 0.0, 1)
            behaviour = recognise(alone, x)
        except Exception:
            continue
        if behaviour:
            found[twin.path] = (behaviour, False)
            twin.inputs, twin.outputs = twin.inputs[1:], twin.outputs[1:]
            trace.calls.append(twin)
    # A norm made of norms, one a head, is one norm.
    return {
        path: value
        for path, value in found.items()
        if not any(path.startswith(f"{other}.") for other in found)
    }


def _twins(trace, known) -> list:
    """Calls of norms that take two tensors, q and k say, and return both."""
    return [
        replace(call, path=f"{call.path}#2")
        for call in trace.calls
        if call.path in known
        and len(call.inputs) > 1 < len(call.outputs)
        and call.outputs[1].shape == call.inputs[1].shape
    ]


@cache
def _file_line(thing) -> tuple[str, int, int]:
    lines, first = inspect.getsourcelines(thing)
    return Path(inspect.getsourcefile(thing)).name, first, first + len(lines) - 1


def where(call, model_file: str) -> str:
    """Where a norm is defined; one of torch's, where the model makes it."""
    kind = type(call.module)
    try:
        file, first, _ = _file_line(kind)
        if "transformers" in kind.__module__:
            return f"{file}:{first}"
        top = call
        while top.parent is not None:
            top = top.parent
        names = call.path.split(".")
        while names[-1].isdigit():  # one of a list, which its owner makes
            names.pop()
        *path, name = names
        owner = type(top.module.get_submodule(".".join(path)))
        file, first, _ = _file_line(owner)
        lines, _ = inspect.getsourcelines(owner)
        for i, line in enumerate(lines):
            if re.search(rf"self\.{re.escape(name)}\b.*=", line):
                return f"{file}:{first + i}"
        return f"{file}:{first}"
    except (OSError, TypeError):
        return model_file


def kind_words(behaviour, width: int) -> str:
    return behaviour.kind + ("" if behaviour.size == width else " groups")


def gain_form(behaviour, module) -> str:
    """The gain's form; "w per head" where it has one number a head, no vector."""
    sizes = [p.numel() for n, p in module.named_parameters() if not n.endswith("bias")]
    few = behaviour.gain == "w" and all(n % behaviour.size for n in sizes)
    return "w per head" if few else behaviour.gain


def norm_row(site: str, call, known, trace_model_file: str, within="") -> list:
    behaviour, gated = known[call.path]
    cast = behaviour.cast + (f" → {behaviour.output}" if behaviour.output else "")
    name = re.search(r"[^.]*[^.\d][^.]*(\.\d+)*$", call.path.removesuffix("#2"))[0]
    return [
        "gated" if gated and site in ("other", "q", "k", "v") else site,
        name,
        type(call.module).__name__,
        kind_words(behaviour, call.inputs[0].shape[-1]),
        gain_form(behaviour, call.module),
        behaviour.bias,
        behaviour.eps,
        cast,
        behaviour.fp16,
        where(call, trace_model_file),
        within,
    ]


# Norms inside attention -------------------------------------------------------


def _contained(part, whole) -> float:
    """The share of a tensor's values that are, bit for bit, values of another."""
    import torch

    return torch.isin(part.reshape(-1), whole.reshape(-1)).double().mean().item()


def _directions(x, width: int):
    """Rows of a given width as unit vectors, rounded: what scaling leaves."""
    rows = x.double().reshape(-1, width)
    return (rows / rows.norm(dim=-1, keepdim=True)).float()


def _same_lengths(x, raw) -> bool:
    """Whether the vectors of x have the lengths of vectors of raw."""
    import torch

    lengths, others = (
        t.double().reshape(-1, x.shape[-1]).norm(dim=-1) for t in (x, raw)
    )
    near = (lengths[:, None] - others[None]).abs().amin(1) / lengths
    return bool((near < 1e-5).double().mean() > 0.98) and torch.isfinite(near).all()


def _reaches(start, norm_out, cross: bool) -> bool:
    """Whether a tensor was computed from a norm's output (across matrices, or not)."""
    if start.node is None or norm_out.node is None:
        return False
    todo, visited = [start.node], set()
    while todo:
        at = todo.pop()
        if at == norm_out.node:
            return True
        if at in visited:
            continue
        visited.add(at)
        if not cross and type(at[0]).__name__ in MATRIX:
            continue
        todo += [n for n in at[0].next_functions if n[0] is not None]
    return False


def attention_norms(block, trace, known) -> list[tuple[str, object, str, str]]:
    """(site, call, scope, rope) of the norms inside the block's branches."""
    start, end = block.call.start, block.call.end
    attended = [a for a in trace.attended if start < a.time < end]
    rotary = any("rotary" in type(c.module).__name__.lower() for c in trace.calls)
    found = []
    for call in block.inner_norms:
        behaviour, gated = known[call.path]
        name = call.path.rpartition(".")[2].lower()
        inside = call.path[len(block.call.path) + 1 :].lower()
        if "index" in inside:
            found.append(("indexer-k" if "k" in name else "other", call, "", ""))
            continue
        if gated:
            found.append(("gated", call, "", ""))
            continue
        site, scope, rope = "other", "", ""
        owner = block.owner_of(call)
        later = [a for a in attended if call.start < a.time < owner.end]
        at = later[0] if later else None
        if at is not None:
            tensors = {"q": at.q, "k": at.k, "v": at.v}
            direct = [n for n, t in tensors.items() if _reaches(t, call.out, False)]
            crossed = [n for n, t in tensors.items() if _reaches(t, call.out, True)]
            if direct:
                site = direct[0] if len(direct) == 1 else "".join(direct)
            elif crossed:
                site = "latent-q" if crossed == ["q"] else "latent-kv"
                scope = "latent"
            if direct:
                head = tensors[direct[0]].shape[-1]
                scope = "head" if behaviour.size <= head else "projection"
                rope = _rope(call, tensors[direct[0]], block, site)
        elif not attended:
            site, scope = _by_name(name)
            if site in ("q", "k", "v"):
                wide = call.inputs[0].shape[-1] >= block.width
                scope = (
                    "projection" if wide and len(call.inputs[0].shape) == 3 else "head"
                )
                rope = _rope(call, None, block, site)
                if rope == "unknown":
                    rope = "before" if rotary else "none"
        found.append((site, call, scope, rope))
    return found


def _by_name(name: str) -> tuple[str, str]:
    if re.search(r"^q_?a_|^q_lora|latent_q", name):
        return "latent-q", "latent"
    if re.search(r"^kv_?a_|^kv_lora|^kv_", name):
        return "latent-kv", "latent"
    for letter in "qkv":
        if re.search(
            rf"^{letter}_|^{letter}norm|_{letter}$|_{letter}_|^(query|key|value)", name
        ):
            if name.startswith(("query", "key", "value")):
                letter = name[0]
            return letter, ""
    return "other", ""


def _rope(call, tensor, block, site: str) -> str:
    """Whether a q or k norm stands before or after the rotation, or there is none."""
    if site == "v":
        return "none"
    raw = [
        c.out.value
        for c in block.inner
        if c.end < call.start
        and c.out is not None
        and "rotary" not in type(c.module).__name__.lower()
    ]
    given = call.inputs[0].value
    raw = [r for r in raw if r.numel() % given.shape[-1] == 0]
    before = any(_contained(given, out) > 0.99 for out in raw)
    if not before and any(_same_lengths(given, out) for out in raw):
        return "after"  # a rotation changes the values and keeps the lengths
    if tensor is None:
        return "unknown"
    width = tensor.shape[-1]
    if call.out.value.numel() % width:
        return "before"
    attended = _directions(tensor.value, width)
    normed = _directions(call.out.value, width)
    close = (attended[:, None] - normed[None]).abs().amax(-1).amin(1) < 1e-4
    return "none" if close.double().mean() > 0.98 else "before"


# Configuration ----------------------------------------------------------------


def _fields(config) -> dict:
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    try:
        return text.to_dict()
    except Exception:
        return {n: v for n, v in vars(text).items() if not n.startswith("_")}


def caps(config, trace) -> list[list]:
    """Soft-cap fields of the default configuration, then tanh calls in action."""
    found = [
        [name, float(value) if isinstance(value, (int, float)) else None]
        for name, value in sorted(_fields(config).items())
        if CAP.search(name)
        and (value is None or isinstance(value, (int, float)))
        and not isinstance(value, bool)
    ]
    lines = dict.fromkeys(
        f.where for f in trace.functional if f.name == "tanh" and f.cap
    )
    return found + [[f"tanh {line}", None] for line in lines]


def multipliers(config) -> list[list]:
    """Factors of the configuration; those of a list one by one where they differ."""
    found = []
    for name, value in sorted(_fields(config).items()):
        if not MULTIPLIER.search(name):
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        if not all(type(v) in (int, float) for v in values):
            continue
        if len(set(values)) == 1:
            found.append([name, float(values[0])])
        else:
            found += [[f"{name}[{i}]", float(v)] for i, v in enumerate(values)]
    return found


def _in_function(f):
    """A norm that is a function, as a module of one tensor."""
    import torch
    from torch import nn

    first = next(n for n, v in f.given.items() if isinstance(v, torch.Tensor))
    others = {n: _detached(v) for n, v in f.given.items() if n != first}
    shape = f.given[first].shape

    class InFunction(nn.Module):
        def forward(self, h):
            return f.function(**others, **{first: h})

    return InFunction(), torch.zeros(shape)


def _detached(value):
    return value.detach() if hasattr(value, "detach") else value


def functional(trace, known, within: str) -> tuple[list, list[str]]:
    """(norms that are functions, other functions that take roots of rows).

    Outside of the norms already recognised, inside one block.
    """
    from snippets.norm_probe.behaviour import recognise

    norms, found = [], []
    for f in trace.functional:
        if f.name == "tanh" or not f"{f.path}.".startswith(f"{within}."):
            continue
        if any(f"{f.path}.".startswith(f"{p}.") for p in known):
            continue
        try:
            behaviour = recognise(*_in_function(f)) if f.function else None
        except Exception:  # not a function of such a tensor alone
            behaviour = None
        if behaviour:
            norms.append((f, behaviour))
        else:
            inside = f.path[len(within) :].lstrip(".") or "block"
            found.append(f"{f.name} in {inside} ({f.where})")
    return norms, list(dict.fromkeys(found))


def function_rows(norms, block_call, trace) -> tuple[list, list]:
    """(rows of norms, rows of QK-norms) of the norms that are functions."""
    rows, qk = [], []
    calls = {c.path: c for c in trace.calls if c.inside(block_call)}
    rotary = any("rotary" in type(c.module).__name__.lower() for c in trace.calls)
    for f, behaviour in norms:
        inside = f.path[len(block_call.path) + 1 :]
        branch = calls.get(f"{block_call.path}.{inside.partition('.')[0]}")
        named = label(branch, block_call) if branch else ""
        site = f.site or "other"
        if branch and str(root_dtype(branch, f.where)) == "torch.float32":
            # Whoever calls it has cast before.
            behaviour = replace(behaviour, cast="in fp32, not cast back", fp16=True)
        rows.append(
            [
                site,
                f.function.__name__,
                "function",
                kind_words(behaviour, next(_shapes(f))[-1]),
                behaviour.gain,
                behaviour.bias,
                behaviour.eps,
                behaviour.cast,
                behaviour.fp16,
                f.where,
                named,
            ]
        )
        if site in ("q", "k", "qk"):
            rope = "unknown" if rotary and named == "Attention" else "none"
            shape = next(_shapes(f))
            wide = len(shape) == 3 and behaviour.size >= block_call.out.shape[-1]
            scope = "projection" if wide else "head"
            qk.append([site, behaviour.kind, behaviour.gain, scope, rope])
    return once(rows), once(qk)


def _shapes(f):
    return (v.shape for v in f.given.values() if hasattr(v, "shape"))


# Rows -------------------------------------------------------------------------


def layer_words(config, count: int) -> list[str]:
    """The configuration's word for each layer, "" where it has none."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    for name in ("layer_types", "layers_block_type", "block_types", "attn_types"):
        try:
            words = getattr(text, name, None)
        except Exception:
            words = None
        if isinstance(words, (list, tuple)) and len(words) == count:
            return [str(w) for w in words]
    return [""] * count


def outer_norms(trace, lists, known) -> list[tuple[str, object, str]]:
    """(site, call, list of blocks) of the norms around the blocks."""
    found = []
    first_start = {
        path: min(
            c.start
            for c in [calls[0], *trace.calls]
            if c.path == calls[0].path and not calls[0].inside(c)
        )
        for path, calls in lists
    }
    apart = [layer for path, calls in lists if loose(path, calls) for layer in calls]
    for call in trace.calls:
        if call.path not in known:
            continue
        if any(call.path.startswith(f"{path}.") for path, _ in lists):
            continue
        if any(call.inside(layer) for layer in apart):
            continue
        site, side = "other", ""
        beside = [
            (path, calls)
            for path, calls in lists
            if call.path.rpartition(".")[0] == path.rpartition(".")[0]
        ]
        if len(beside) == 1:
            ((side, calls),) = beside
            if call.end < first_start[side] and _enters(call, calls):
                site = "embedding"
            elif call.start > calls[-1].end:
                site = "final"
        for path, calls in lists:
            given, last = call.inputs[0].value, calls[-1].out.value
            first = stream(calls[0]).value
            out = call.out.value
            if given.numel() == last.numel() and equal(given, last):
                site, side = "final", path
            elif call.start > calls[-1].end and calls[-1].out.node is not None:
                if _reaches(call.inputs[0], calls[-1].out, False):
                    site, side = "final", path
                elif _reaches(call.inputs[0], calls[-1].out, True):
                    site, side = "head", path
            elif call.end < first_start[path] and (
                out.numel() == first.numel() and equal(out, first)
            ):
                site, side = "embedding", path
        if site == "other":
            if all(call.end < start for start in first_start.values()):
                if any(_enters(call, calls) for _, calls in lists):
                    site = "embedding"
            elif all(call.start > calls[-1].end for _, calls in lists):
                site = "final"
        found.append((site, call, side))
    placed = {call.path for site, call, _ in found if site != "other"}
    chosen: dict = {}  # a module may stand before the blocks and behind them
    for site, call, side in found:
        if site != "other" or call.path not in placed:
            chosen.setdefault((call.path, site, side), (site, call, side))
    return list(chosen.values())


def _enters(call, calls) -> bool:
    """Whether the stream that enters the blocks was computed from a norm's output."""
    first = stream(calls[0])
    return first.node is None or _reaches(first, call.out, True)


def never_ran(block_call, trace, known) -> list[str]:
    """Names of a block's norms that were not called."""
    import torch

    from snippets.norm_probe.behaviour import recognise

    called = {c.path for c in trace.calls}
    kinds = {type(c.module) for c in trace.calls if c.path in known}
    found = []
    for name, module in block_call.module.named_modules():
        path = f"{block_call.path}.{name}".lstrip(".")
        if path in called or any(module.children()):
            continue
        sizes = {p.numel() for p in module.parameters() if p.ndim == 1}
        if any(p.ndim > 1 for p in module.parameters()) or len(sizes) > 1:
            continue
        norm = type(module) in kinds
        if sizes and not norm:
            try:
                norm = recognise(module, torch.zeros(2, 3, *sizes)) is not None
            except Exception:  # it takes something else
                norm = False
        if norm:
            found.append(name)
    return found


FACTOR = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?=·)")
POWERS = {-1.0: "({}/L)", -0.5: "({}/√L)", 0.5: "({}√L)", 1.0: "({}L)"}


def with_depth(equations: list[str], deeper: list[str], layers: int) -> list[str]:
    """Equations whose factors follow the number of layers L, as formulas of it.

    ``deeper`` are those of an instance with twice as many layers.
    """
    changed = []
    for ours, theirs in zip(equations, deeper, strict=True):
        other = iter(FACTOR.findall(theirs))

        def formula(match, other=other):
            here, there = float(match[0]), float(next(other))
            for power, text in POWERS.items():
                if abs(there / here / 2**power - 1) < 2e-3:
                    return text.format(f"{here / layers**power:.3g}")
            return match[0]

        changed.append(FACTOR.sub(formula, ours))
    return changed


def unresolved(reason: str) -> dict:
    return {"status": "unresolved", "reason": reason}


def analyse(block_call, trace, known, model_file: str) -> dict:
    """Everything about one block that a row holds."""
    if (several := multi_stream(block_call, trace, known)) is not None:
        return _several(several, trace, known, model_file)
    block = Block(trace, block_call, known)
    found = {"placement": None, "equations": [], "qk": [], "norms": []}
    if block.result is None and (
        several := multi_stream(block_call, trace, known, flat=True)
    ):
        return _several(several, trace, known, model_file)
    if block.result is None:
        return {**found, **unresolved("output not matched")}
    if block.nodes[block.result].kind == "branch":
        reason = "the list's modules add nothing to a residual stream themselves"
        return {**found, **unresolved(reason)}
    found["equations"] = block.equations()
    found["placement"] = block.placement()
    sites = block.sites()
    inner = attention_norms(block, trace, known)
    covered = {c.path for _, c in sites} | {c.path for _, c, *_ in inner}
    covered |= {c.path for c in block.idle}
    missing = [c.path for c in block.inner if c.path in known and c.path not in covered]
    missing += [c.path for site, c, *_ in inner if site == "other" and _hides(block, c)]
    rows = [norm_row(site, call, known, model_file) for site, call in sites]
    rows += inner_rows(inner, block, known, model_file)
    found["norms"] = once(rows)
    found["qk"] = qk_rows(inner, known)
    unread = [c.path for c in block.inner_norms if block.in_the_open(c)]
    status, reason = "resolved", None
    if found["placement"] == "other":
        reason = "branches differ: " + ", ".join(
            f"{name} {kind}" for name, kind in block.branch_places()
        )
    if any(not node.reads for node in block.branches()):
        reason = "no graph shows what the branches read"
        return {**found, "placement": None, "equations": [], **unresolved(reason)}
    if unread:
        status = "partial"
        inside = [p[len(block_call.path) + 1 :] for p in dict.fromkeys(unread)]
        reason = "norms whose input was not matched: " + ", ".join(inside)
    elif missing:
        status = "partial"
        inside = [p[len(block_call.path) + 1 :] for p in dict.fromkeys(missing)]
        reason = "norms without a place in the equations: " + ", ".join(inside)
    return {**found, "status": status, "reason": reason}


MIXERS = ("Attention", "CrossAttention", "LinearAttention", "Mamba", "Recurrent")


def _hides(block, norm) -> bool:
    """Whether a norm leads from a mixer to an FFN that are drawn as one branch."""
    box = block.owner_of(norm)
    parts = [
        c
        for c in block.inner
        if c.inside(box) and id(c) in block.parents and c.inputs and c.out
    ]
    if box is block.call:
        return False
    return any(
        label(c, box) in MIXERS
        for c in parts
        if c.end < norm.start and _reaches(norm.inputs[0], c.out, True)
    ) and any(
        label(c, box) == "FFN"
        for c in parts
        if c.start > norm.end and any(_reaches(s, norm.out, True) for s in c.inputs)
    )


def _several(found, trace, known, model_file: str) -> dict:
    """A row of a block with several residual streams."""
    equations, sites, missing, others, block = found
    inner = attention_norms(block, trace, known)
    rows = [norm_row(site, call, known, model_file) for site, call in sites]
    rows += inner_rows(inner, block, known, model_file)
    rows += [norm_row("other", call, known, model_file) for call in others]
    return {
        "placement": "multi-stream",
        "equations": equations,
        "norms": once(rows),
        "qk": qk_rows(inner, known),
        "status": "partial" if missing else "resolved",
        "reason": missing or None,
    }


def inner_rows(inner, block, known, model_file: str) -> list[list]:
    """Rows of the norms inside branches, with the branch that each is in."""
    found = []
    for site, call, *_ in inner:
        owner = block.owner_of(call)
        within = "" if owner is block.call else label(owner, block.call)
        found.append(norm_row(site, call, known, model_file, within))
    return found


def once(rows: list[list]) -> list[list]:
    """Each row once, where a norm is called several times."""
    return [row for i, row in enumerate(rows) if row not in rows[:i]]


def qk_rows(inner, known) -> list[list]:
    found = []
    for site, call, scope, rope in inner:
        if rope or scope == "latent":
            behaviour, _ = known[call.path]
            words = kind_words(behaviour, call.inputs[0].shape[-1])
            gain = gain_form(behaviour, call.module)
            found.append([site, words, gain, scope, rope or "none"])
    return once(found)


def notes(start: dict, known) -> list[str]:
    """What a reader would not expect of the class's own initialisation."""
    found = {}
    for path, (behaviour, _) in known.items():
        form, norm = behaviour.gain, path.removesuffix("#2")
        values = [
            value
            for name, value in start.items()
            if name.rpartition(".")[0] == norm and not name.endswith("bias")
        ]
        if form not in ("w", "1+w") or len(values) != 1:
            continue
        gain = values[0] + (form == "1+w")
        if abs(gain - 1) > 0.01:
            text = f"gain {form} starts at {gain:.3g}"
            found.setdefault(text, norm.rpartition(".")[2])
    return [f"{text} ({path})" for text, path in found.items()]


def not_run(model, path: str, calls: list) -> str | None:
    """What to say of a list of blocks some of which a text alone never reaches."""
    if loose(path, calls):
        return None
    held = {name for name, _ in model.get_submodule(path).named_children()}
    left = held - {call.path.rpartition(".")[2] for call in calls}
    if not left:
        return None
    return "not run: layer " + ", ".join(sorted(left, key=int))


def _without_index(found: dict, i: int) -> dict:
    """What is found of the i-th layer, its norms by the names of their lists."""
    equations = [text.replace(f".{i}]", "]") for text in found["equations"]]
    norms = [[n[0], n[1].removesuffix(f".{i}"), *n[2:]] for n in found["norms"]]
    return found | {"equations": equations, "norms": norms}


def _first_norm(every: list[dict]) -> None:
    """A norm that the first block alone puts on what it is given: the embedding's."""
    names = {norm[1] for found in every[1:] for norm in found["norms"]}
    for norm in every[0]["norms"]:
        read = f"N[{norm[1]}](x)"
        alone = norm[0] == "other" and norm[1] not in names and len(every) > 1
        if alone and any(read in e for e in every[0]["equations"]):
            norm[0] = "embedding"


def deeper(architecture: str, path: str, every: list[dict]) -> list[dict]:
    """The same blocks, their factors as formulas of the number of layers."""
    model, given, _ = tiny.build(architecture, deeper=True)
    trace = follow(model, given)
    known = behaviours(trace)
    (calls,) = [calls for p, calls in blocks(trace, model) if p == path]
    model_file = _file_line(type(model))[0]
    changed = []
    for call, found in zip(calls, every, strict=False):
        other = analyse(call, trace, known, model_file)["equations"]
        equations = with_depth(found["equations"], other, len(every))
        changed.append(found | {"equations": equations})
    return changed


def examine(architecture: str) -> list[dict]:
    """The rows of one architecture: one for each distinct kind of layer."""
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(False)
    model, given, start = tiny.build(architecture)
    trace = follow(model, given)
    known = behaviours(trace)
    lists = blocks(trace, model)
    config = model.config
    model_file = _file_line(type(model))[0]
    if not lists:
        return [row(architecture, reason="no list of blocks with one residual stream")]
    both = len(lists) > 1
    idle = {path: not_run(model, path, calls) for path, calls in lists}
    outer = outer_norms(trace, lists, known)
    outer_rows = {
        path: once(
            [
                norm_row(site, call, known, model_file)
                for site, call, side in outer
                if side in ("", path)
            ]
        )
        for path, _ in lists
    }
    default = type(config)()
    shared = {
        "caps": caps(default, trace),
        "multipliers": multipliers(default),
        "notes": notes(start, known),
    }
    rows = []
    for path, calls in lists:
        words = layer_words(config, len(calls))
        kinds: dict = {}
        every = [analyse(call, trace, known, model_file) for call in calls]
        if loose(path, calls):
            every = [_without_index(found, i) for i, found in enumerate(every)]
        _first_norm(every)
        if any(FACTOR.search(e) for found in every for e in found["equations"]):
            every = deeper(architecture, path, every)
        for i, (call, found) in enumerate(zip(calls, every, strict=True)):
            norms, found["functional"] = functional(trace, known, call.path)
            rows_, qk = function_rows(norms, call, trace)
            found["norms"] = found["norms"] + rows_
            found["qk"] = found["qk"] + qk
            left = never_ran(call, trace, known)
            reasons = (
                left and "norms that never ran: " + ", ".join(left),
                found["functional"]
                and "roots that no probe tells: " + ", ".join(found["functional"]),
                idle[path],
            )
            said = "; ".join(filter(None, reasons))
            if said and found["status"] == "resolved":
                found |= {"status": "partial", "reason": said}
            key = repr({k: v for k, v in found.items()})
            kinds.setdefault(key, (found, call, []))[2].append(i)
        names: list[str] = []
        for found, call, layers in kinds.values():
            here = list(dict.fromkeys(words[i] for i in layers))
            name = "" if len(kinds) == 1 else "/".join(w for w in here if w)
            if both:
                side = "encoder" if "encoder" in path else path.rpartition(".")[0]
                side = "decoder" if "decoder" in path else side
                name = f"{side}, {name}" if name else side
            elif not name and len(kinds) > 1:
                name = f"layer {layers[0]}"
            if name in names:
                name = f"{name} (layer {layers[0]})"
            names.append(name)
            file, first, last = _file_line(inspect.unwrap(type(call.module).forward))
            source = [["block", file, first, last]]
            classes = {}
            for other in trace.calls:
                if other.path in known:
                    classes.setdefault(type(other.module).__name__, other)
            for title, other in classes.items():
                try:
                    source.append([title, *_file_line(type(other.module))])
                except (OSError, TypeError):
                    continue
            rows.append(
                row(
                    architecture,
                    layer=name,
                    layers=layers,
                    **{**found, "norms": found["norms"] + outer_rows[path]},
                    source=source,
                    **shared,
                )
            )
            if any("L)·" in e for e in rows[-1]["equations"]):
                depth = float(default.num_hidden_layers)
                rows[-1]["multipliers"] = [
                    *shared["multipliers"],
                    ["num_hidden_layers", depth],
                ]
    return rows
