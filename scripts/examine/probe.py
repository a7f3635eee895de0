"""The atlas's probes on one model: rows as those of the atlas, layer by layer."""

import copy
import inspect
import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

from scripts.examine import flow, heads, inline, open_code, state, unusual_norms
from scripts.examine.attention import Products
from scripts.examine.lists import containers, joined
from scripts.examine.load import Loaded, Refusal, article
from scripts.examine.tape import Tape, reals_in
from scripts.experiments.atlas import examine as atlas
from scripts.experiments.atlas import trace as tracing
from scripts.experiments.atlas.blocks import blocks, equal, stream

APART = "the list's modules add nothing to a residual stream themselves"
NO_BLOCKS = "no list of blocks with a residual stream"
TORCH = "torch"
BOTH = re.compile(
    r"\w+ = N\[[^]]*\]\([^()]* \+ [^()]*N\[[^]]*\]\(\w+\(\w+\)\)\)"
)  # nGPT


@dataclass
class Probed:
    """What was seen of a model."""

    loaded: Loaded
    stored: dict  # its vectors as they came, before they were made random
    trace: object
    known: dict  # path of a norm -> (behaviour, gated)
    lists: list  # (path, calls of its blocks)
    strange: dict  # path of a norm over other axes -> what it normalizes over
    unread: list  # (path, name, file:line) of roots that are of no norm read
    tape: object  # every function of the pass
    through: list  # calls for which a norm inside of them stands
    rows: list = field(default_factory=list)
    outer: list = field(default_factory=list)  # (site, call, list)
    layers: dict = field(default_factory=dict)  # list -> what each layer does
    across: list = field(default_factory=list)  # norms that run over the heads
    apart: dict = field(default_factory=dict)  # norm -> (place, e) of such an epsilon
    lost: dict = field(default_factory=dict)  # (name, file:line) of what removes scale


def randomise(model, seed: int = 0) -> None:
    """Random weights, so that no factor is one by accident; masks and angles stay."""
    import torch

    random = torch.Generator().manual_seed(seed)
    kept = set(model.state_dict())
    own = dict(model.named_parameters())
    learned = {n: p for n, p in own.items() if p.requires_grad} or own
    scalars = {
        n: b
        for n, b in model.named_buffers()
        if n in kept and b.is_floating_point() and b.numel() == 1
    }
    for name, p in (learned | scalars).items():
        if not p.is_floating_point():
            continue
        noise = torch.randn(p.shape, generator=random).to(p.dtype)
        with torch.no_grad():
            if p.ndim > 1 and p.shape[-1] > 1:
                p.copy_(noise / p.shape[-1] ** 0.5)
            elif name.endswith("bias"):
                p.copy_(0.2 * noise)
            elif name.endswith("weight") and p.ndim == 1:
                p.copy_(1 + 0.3 * noise)
            else:
                p.add_(0.2 * noise)
    for name, p in own.items():
        if name in learned and p.is_floating_point():
            p.requires_grad_(True)


def places(model) -> list[str]:
    """Files and packages whose lines are the reader's: where the classes stand."""
    found = set()
    for kind in {type(m) for m in model.modules()}:
        if kind.__module__.partition(".")[0] == TORCH:
            continue
        try:
            file = Path(inspect.getfile(kind)).as_posix()
        except (OSError, TypeError):  # made in a shell
            continue
        _, packages, inside = file.rpartition("site-packages/")
        if packages:
            found.add(f"site-packages/{inside.partition('/')[0]}")
        else:
            found.add(file)
    return sorted(found)


def probe(loaded: Loaded) -> Probed:
    """The rows of a model. Refusal if it shows no blocks."""
    model = loaded.model
    stored = {n: p.detach().clone() for n, p in model.named_parameters() if p.ndim <= 1}
    randomise(model)
    tracing.FOLDERS[1:] = places(model)
    _find_tokens(loaded)
    state.keep(model)
    trace, tape = followed(loaded)
    strange: dict = {}
    known = named(trace, strange)
    unread = _add_inline(tape, trace, known, strange)
    inline.modulated(tape, trace, known)
    through = inline.see_through(trace, known)
    lists = _lists(trace, model, known)
    if not lists:
        raise Refusal(_no_blocks(loaded))
    found = Probed(loaded, stored, trace, known, lists, strange, unread, tape, through)
    found.outer = atlas.outer_norms(trace, lists, known)
    _note_apart(found)
    for path, calls in lists:
        _rows_of(found, path, calls)
    return found


def followed(loaded: Loaded) -> tuple:
    """(trace, tape) of one pass, with a graph even where the model wants none."""
    from contextlib import nullcontext

    for graph in (state.graph_kept, nullcontext):
        given = _graphed(loaded.given)
        tape = Tape(given)
        state.reset(loaded.model)
        try:
            with graph(), tape.recording(), state.replaced(tracing, tensors=reals_in):
                trace = tracing.follow(loaded.model, given, Products(tape))
        except RuntimeError:  # it changes its own weights, say
            if graph is nullcontext:
                raise
        finally:
            state.reset(loaded.model)
        for call in trace.calls:
            _stream_first(call)
        return trace, tape
    raise AssertionError("the last pass returns or raises")


def _stream_first(call) -> None:
    """Let the one result of an entry of a list that has its input's shape lead."""
    shapes = {s.shape for s in call.inputs}
    like = [s for s in call.outputs if s.shape in shapes]
    if call.path.rpartition(".")[2].isdigit() and len(like) == 1:
        call.outputs.sort(key=lambda s: s is not like[0])


def _no_blocks(loaded: Loaded) -> str:
    """Why no blocks were seen: what an entry of a list returns, where none is read."""
    returned: dict = {}
    hooks = [
        m.register_forward_hook(lambda _m, _a, out, p=path: returned.update({p: out}))
        for path, m in loaded.model.named_modules()
        if path.rpartition(".")[2].isdigit()
    ]
    flow.ran(loaded.model, loaded.given)
    for hook in hooks:
        hook.remove()
    for path, out in returned.items():
        if out is not None and not reals_in(out):
            return f"{NO_BLOCKS}: {path} returns {article(out)}, no tensor seen in it"
    return NO_BLOCKS


def _add_inline(tape, trace, known: dict, strange: dict) -> list[tuple]:
    """Add the norms that no module holds to a trace. Returns the roots left unread."""
    calls, unread = inline.find(tape, trace, known)
    also = named(SimpleNamespace(calls=list(calls)), strange)
    by_hand = {c.path: not c.whole for c in calls}
    for call in calls:
        if call.path in also:
            trace.calls.append(call)
        else:
            unread.append((call.parent.path, call.called, call.module.where))
    trace.calls.sort(key=lambda c: c.start)
    for path, (behaviour, gated) in also.items():
        if by_hand.get(path):  # dtypes are written down as they were in this pass
            also[path] = replace(behaviour, cast="", output="", fp16=True), gated
    known |= also
    return unread


def _note_apart(found: Probed) -> None:
    """Note the epsilons that are no summand under the root."""
    for call in found.trace.calls:
        behaviour, gated = found.known.get(call.path, (None, True))
        if gated or behaviour.eps is not None or "#" in call.path:
            continue
        if call.path not in found.apart:
            axes = found.strange[call.path].axes if call.path in found.strange else ()
            try:
                alone, _, x = atlas._alone(call, 0.0)
                place, e = unusual_norms.eps_place(alone, x, behaviour.size, axes)
            except Exception:  # not a module of one tensor
                continue
            found.apart[call.path] = [place, float(f"{e:.3g}")]


def _find_tokens(loaded: Loaded) -> None:
    """Note where the tokens stand; a guessed input has few samples and many tokens."""
    try:
        loaded.tokens_first = flow.tokens_first(loaded.model, loaded.given)
    except Exception:  # it does not take a changed input
        return
    if loaded.tokens_first and loaded.guessed:
        turned = {n: v.transpose(0, 1).contiguous() for n, v in loaded.given.items()}
        try:
            flow.ran(loaded.model, turned)
        except Exception:  # so many tokens are too many
            return
        loaded.given = turned


def _graphed(given: dict) -> dict:
    """Real inputs with a node in autograd's graph: what reads them is seen."""
    return {
        n: v.detach().requires_grad_(True) * 1
        if getattr(v, "is_floating_point", bool)()
        else v
        for n, v in given.items()
    }


def named(trace, strange: dict) -> dict:
    """The norms of a trace: those of the atlas, and three kinds that it leaves out.

    A norm with a buffer refuses other dtypes until the buffer is cast; of a norm whose
    epsilon is a floor no summand is recovered; and norms over other axes, or with
    another divisor, which are noted in ``strange`` as well.
    """
    known, seen = atlas.behaviours(trace), set()
    known = {p: v for p, v in known.items() if not inline.of_weight(p)}
    for call in trace.calls:
        held = any(f"{call.path}.".startswith(f"{p}.") for p in known)
        held = held or inline.of_weight(call.path)
        if call.path in seen or held or not atlas.may_be_norm(call):
            continue
        seen.add(call.path)
        try:
            alone, gated, x = atlas._alone(call, atlas.OPEN[0])
            behaviour = None if gated else _behaviour(call, alone, x, strange)
        except Exception:  # not a module of one tensor
            continue
        if behaviour:
            known[call.path] = (behaviour, False)
    for call in trace.calls:
        if call.path in known and not known[call.path][1] and _adds(call):
            del known[call.path]
    for call in trace.calls:
        behaviour, gated = known.get(call.path, (None, True))
        plain = call.path not in strange and "#" not in call.path
        if not gated and not behaviour.eps and plain:
            alone, _, x = atlas._alone(call, 0.0)
            if unusual_norms.eps_place(alone, x, behaviour.size)[0] != "none":
                known[call.path] = (replace(behaviour, eps=None), False)
    return known


def _adds(call) -> bool:
    """Whether a norm's result feels a second tensor of its input's shape."""
    import torch

    shape = call.inputs[0].shape
    if sum(s.shape == shape for s in call.inputs) < 2:
        return False
    torch.manual_seed(0)
    alone, _, x = atlas._alone(call, 0.0)
    other = copy.copy(call)
    other.raw = tuple(_shifted(part) for part in call.raw)
    with torch.no_grad():
        h = unusual_norms._numbers(x.shape)
        return flow.differs(alone(h), atlas._alone(other, 0.0)[0](h))


def _shifted(value):
    """Nested arguments with every real tensor moved."""
    import torch

    if isinstance(value, dict):
        return {n: _shifted(v) for n, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_shifted, value))
    real = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.detach() + 8 * torch.cos(value.detach()) if real else value


def _behaviour(call, alone, x, strange: dict):
    """A norm that the atlas leaves out; None if it is none."""
    from snippets.norm_probe import behaviour as probes

    if found := _large_eps(alone, x):
        return found
    if any(True for _ in call.module.buffers()):
        alone = _cast(alone)
        if found := probes.recognise(alone, x):
            output = "" if found.output == "error" else found.output
            return replace(found, output=output)
    same = call.out.shape == call.inputs[0].shape
    said = unusual_norms.odd(alone, x.shape) if same else None
    if said is None:
        return None
    if kind := unusual_norms.plain(
        said, x.shape
    ):  # wide: a change of one is lost in rounding
        return _plain(alone, unusual_norms._numbers(x.shape), kind)
    strange[call.path] = said
    place, e = unusual_norms.eps_place(alone, x, x.shape[-1], said.axes)
    gain, bias, _ = probes.bare_norm(alone, unusual_norms._numbers(x.shape))
    kind = "LayerNorm" if said.centred else "RMSNorm"
    if said.axes != (x.ndim - 1,):
        kind += f" [{', '.join(map(str, said.axes))}]"
    eps = probes.shortest(e * e, 1e-3) if place == "inside" else None
    found = probes.Behaviour(kind, x.shape[-1], gain, bias, eps, "", "", True)
    fp16 = probes.right_in_fp16(alone, unusual_norms._numbers(x.shape), found)
    return replace(found, fp16=fp16)


def _large_eps(alone, x):
    """A norm whose epsilon is felt by the probes' usual inputs: larger ones tell."""
    from torch import nn

    from snippets.norm_probe import behaviour as probes

    class Far(nn.Module):
        def __init__(self):
            super().__init__()
            self.alone = alone

        def forward(self, h):
            return self.alone(unusual_norms.FAR * h)

    try:
        found = probes.recognise(Far(), x)
    except Exception:  # it refuses bfloat16
        return None
    if not found or found.eps is None:
        return None
    x = unusual_norms._numbers(x.shape)
    _, _, bare = probes.bare_norm(alone, x)
    found = replace(found, eps=probes.recover_eps(bare, x, found.kind, found.size))
    return replace(found, fp16=probes.right_in_fp16(alone, x, found))


def _plain(alone, x, kind: str):
    """What `recognise` says of a norm of this kind over all features."""
    import torch

    from snippets.norm_probe import behaviour as probes

    with torch.no_grad():
        gain, bias, bare = probes.bare_norm(alone, x)
        eps = probes.recover_eps(bare, x, kind, x.shape[-1])
        found = probes.Behaviour(kind, x.shape[-1], gain, bias, eps, "", "", True)
        try:
            cast, output = probes.cast_order(alone, x, found)
            fp16 = probes.right_in_fp16(alone, x, found)
        except RuntimeError:  # low parameters are refused: it casts its input
            alone = _wide(alone)
            cast, output = probes.cast_order(alone, x, found)
            fp16 = probes.right_in_fp16(alone, x, found)
    return replace(found, cast=cast, output=output, fp16=fp16)


def _wide(alone):
    """The same module with its parameters in float32, whatever it is given."""
    from torch import nn
    from torch.func import functional_call

    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            for name, p in alone.named_parameters():
                self.register_parameter(name.replace(".", "_"), p)
            self.names = {n.replace(".", "_"): n for n, _ in alone.named_parameters()}

        def forward(self, h):
            wide = {n: getattr(self, own).float() for own, n in self.names.items()}
            return functional_call(alone, wide, (h,))

    return Wide()


def _cast(alone):
    """The same module with its buffers in the dtype of its input."""
    from torch import nn
    from torch.func import functional_call

    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.alone = alone

        def forward(self, h):
            low = {
                n: b.to(h.dtype) if b.is_floating_point() else b
                for n, b in self.alone.named_buffers()
            }
            return functional_call(self.alone, low, (h,))

    return Cast()


def inlined(equations: list[str]) -> list[str]:
    """Equations in which a scaled branch stands where it is added."""
    lines = list(equations)
    for line in equations[:-1]:
        name, _, value = line.partition(" = ")
        used = [k for k in lines if re.search(rf"\b{name}\b", k.partition(" = ")[2])]
        alone = re.fullmatch(r"[\w.]+[⊙·]\w+\(.*\)", value) and " + " not in value
        if alone and len(used) == 1 and f"({name})" not in used[0]:
            parts = re.split(rf"\b{name}\b", used[0])
            lines[lines.index(used[0])] = value.join(parts)
            lines.remove(line)
    return lines


def _lists(trace, model, known) -> list:
    """Lists of blocks, also those whose layers no module holds, or in stages."""
    held = containers(trace, model)
    found = []
    for path, calls in blocks(trace, model):
        if any(f"{path}.".startswith(f"{other}.") for other in held):
            continue
        if _apart(trace, calls[0], known):
            whole = joined(trace, model, path)
            if whole and not _apart(trace, whole[0], known):
                found.append((path, whole))
            else:
                found += _stages(trace, model, calls) or [(path, calls)]
        else:
            found.append((path, calls))
    for path in held:
        if calls := joined(trace, model, path):
            found.append((path, calls))
            _rename(trace, calls, known)
    found = [(path, calls) for path, calls in found if any(map(stream, calls))]
    return [(path, open_code.summed(calls) or calls) for path, calls in found]


def _rename(trace, layers: list, known) -> None:
    """Name norms that are functions by the layer that no module holds."""
    for layer in layers:
        inside = (c for c in trace.calls if c.parent is layer and hasattr(c, "called"))
        for number, call in enumerate(inside, start=1):
            name = f"{layer.path}.{call.called}" + (f"_{number}" if number > 1 else "")
            known[name] = known.pop(call.path)
            call.path = name


def _stages(trace, model, calls) -> list:
    """The lists inside of a list whose modules are stages of layers."""
    outer = {call.path for call in calls}
    holder = calls[0].path.rpartition(".")[0]
    others = [c for c in trace.calls if c.path.rpartition(".")[0] != holder]
    inside = blocks(SimpleNamespace(calls=others), model)
    return [(p, c) for p, c in inside if any(p.startswith(f"{o}.") for o in outer)]


def _apart(trace, call, known) -> bool:
    found = atlas.analyse(call, trace, known, "")
    return found["status"] == "unresolved"


def _rows_of(found: Probed, path: str, calls: list) -> None:
    """Add a row for each distinct kind of layer of one list."""
    trace, known = found.trace, found.known
    every = []
    for call in calls:
        said = atlas.analyse(call, trace, known, "")
        if said["status"] == "unresolved" and open_code.add_branches(found, call):
            said = atlas.analyse(call, trace, known, "")
        said["functional"] = [
            f"{name} in {path[len(call.path) + 1 :] or 'block'} ({where})"
            for path, name, where in found.unread
            if f"{path}.".startswith(f"{call.path}.")
        ]
        said["equations"] = inlined(said["equations"])
        if said["reason"] == APART and _follow_each_other(calls):
            said["reason"] = "output not matched"
        _correct_sites(found, call, said)
        bare = said["placement"] == "none" or " none" in (said["reason"] or "")
        read = said["status"] != "unresolved"
        lost = open_code.scale_lost(found, call, bare) if read else []
        if lost and not said["functional"]:
            found.lost |= dict.fromkeys(lost)
            said["placement"] = None
            if (said["reason"] or "").startswith("branches differ"):
                said["reason"] = None
        held = ".".join(call.path.split(".")[-2:]) + "."
        for norm in said["norms"]:
            norm[1] = norm[1].removeprefix(held)  # of lists in lists
        ran = {
            id(c.module) for c in [*trace.calls, *found.through]
        }  # under whatever name
        own = dict(call.module.named_modules())
        left = atlas.never_ran(call, trace, known)
        read = found.tape.parameters
        left = [
            name
            for name in left
            if id(own[name]) not in ran
            and not any(id(p) in read for p in own[name].parameters())
        ]
        why = said["reason"] or ""
        alike = all(BOTH.fullmatch(line) for line in said["equations"])
        differ = why if why.startswith("branches differ") and not alike else ""
        reasons = (
            left and "norms that never ran: " + ", ".join(left),
            said["functional"]
            and "roots that no probe tells: " + ", ".join(said["functional"]),
            _other_stream(call) and "the layer's other stream",
        )
        why = "; ".join(filter(None, reasons))
        if why and said["status"] == "resolved":
            said |= {"status": "partial", "reason": why}
        if said["functional"] and said["placement"] == "none":
            said["placement"] = None  # what is not read may stand there
        said["idle"] = left
        said["differ"], said["batch_norms"] = differ, _batch_norms(call, trace)
        said["apart"] = {
            p.rpartition(".")[2]: e
            for p, e in found.apart.items()
            if p.startswith(f"{call.path}.") or p in {c.path for _, c, _ in found.outer}
        }
        every.append(said)
    atlas._first_norm(every)
    found.layers[path] = every
    outer = atlas.once(
        [
            atlas.norm_row(site, call, known, "")
            for site, call, side in found.outer
            if side in ("", path)
        ]
    )
    kinds: dict = {}
    for i, said in enumerate(every):
        key = repr({k: v for k, v in said.items() if k != "norms"} | _nameless(said))
        kinds.setdefault(key, (said, []))[1].append(i)
    for said, layers in kinds.values():
        name = path if len(found.lists) > 1 else ""
        row = {n: v for n, v in said.items() if n != "idle"}
        row |= {"norms": said["norms"] + outer, "layer": name, "layers": layers}
        row["list"] = path
        empty = {"caps": [], "multipliers": [], "source": [], "notes": []}
        found.rows.append({"architecture": found.loaded.name, **empty, **row})


def _other_stream(call) -> bool:
    """Whether a layer takes and gives a second stream of another length."""
    shape = call.out.shape
    kinds = [
        {s.shape for s in part if len(s.shape) == 3 and s.shape[-1] == shape[-1]}
        for part in (call.inputs, call.outputs)
    ]
    return bool((kinds[0] & kinds[1]) - {shape})


def _follow_each_other(calls: list) -> bool:
    """Whether each module is given what the one before it gives: whole layers."""
    return len(calls) > 1 and all(
        (given := stream(after)) is not None
        and given.shape == before.out.shape
        and bool((given.value == before.out.value).all())
        for before, after in pairwise(calls)
    )


def _correct_sites(found: Probed, call, said: dict) -> None:
    """Put right what the atlas says of norms of q, k, latents and other streams."""
    across, turned = _qk_norms(found, call)
    qk = []
    for site, kind, gain, scope, rope in said["qk"]:
        if site == "kv":  # k and v are one: attention reads the latent itself
            site, scope, rope = "latent-kv", "latent", "none"
        site = "qk" if site == "qkv" else site
        scope = "heads" if site in across else scope
        rope = "after" if rope == "none" and site in turned else rope
        qk.append([site, kind, gain, scope, rope])
    others = {
        norm.path.rpartition(".")[2]
        for norm in found.trace.calls
        if norm.path in found.known
        and norm.inside(call)
        and norm.inputs[0].shape != call.out.shape
        and any(equal(norm.inputs[0].value, s.value) for s in call.inputs)
    }
    latent = [n for n in said["norms"] if n[0].startswith("latent")]
    if others and all(n[1].rpartition(".")[2] in others for n in latent):
        qk = [e for e in qk if e[3] != "latent"]  # of the layer's other stream
        for norm in latent:
            norm[0] = "other"
    for norm in said["norms"]:
        norm[0] = {"kv": "latent-kv", "qkv": "qk"}.get(norm[0], norm[0])
    said["qk"] = qk


def _qk_norms(found: Probed, block) -> tuple[set[str], set[str]]:
    """(sides whose norm runs over the heads, sides that are turned before their norm).

    Notes the norms over the heads.
    """
    sides: set[str] = set()
    turned: set[str] = set()
    for attended in found.trace.attended:
        if not block.start < attended.time < block.end:
            continue
        for norm in found.trace.calls:
            if norm.path not in found.known or not norm.inside(block):
                continue
            for side in "qk":
                direct = norm.end < attended.time and atlas._reaches(
                    getattr(attended, side), norm.out, False
                )
                if direct and heads.across(found, norm, attended, side):
                    sides.add(side)
                    found.across.append(norm.path)
                if direct and heads.turned(found, block, norm):
                    turned.add(side)
    return sides, turned


def _batch_norms(block, trace) -> list[str]:
    """Names of a block's BatchNorms: in evaluation they are no norms."""
    import torch

    kind = torch.nn.modules.batchnorm._BatchNorm
    inner = [c for c in trace.calls if c.inside(block) and isinstance(c.module, kind)]
    return [c.path.removeprefix(f"{block.path}.") for c in inner]


def _nameless(said: dict) -> dict:
    """Norms of a layer without the lines that they stand in."""
    return {"norms": [norm[:9] + norm[10:] for norm in said["norms"]]}
