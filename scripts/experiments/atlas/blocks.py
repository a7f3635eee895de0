"""From a trace to equations: what one block adds to the residual stream, and how."""

import re
import string
from dataclasses import dataclass, field, replace

from scripts.experiments.atlas.branches import label
from scripts.experiments.atlas.trace import Seen, reads

LETTERS = [c for c in string.ascii_lowercase if c not in "xyce"]
AUXILIARY = ("PerLayerInput", "Laurel", "Mix", "Gate")  # no branches of their own
OUTSIDE = None  # what a block is given beside its stream
MATRIX = ("MmBackward0", "AddmmBackward0", "BmmBackward0", "ConvolutionBackward0")


@dataclass
class Node:
    """A tensor of the residual stream's size, and where it comes from."""

    kind: str  # x, norm, branch, sum
    name: str
    seen: object
    call: object = None
    terms: dict = field(default_factory=dict)  # node index -> coefficients
    reads: list = field(default_factory=list)  # node indices
    shared: str = "all"
    letter: str = ""
    uses: int = 0


def blocks(trace, model) -> list[tuple[str, list]]:
    """(path of the list, first call of each of its blocks), outermost lists only."""
    from torch import nn

    lists = {
        path
        for path, module in model.named_modules()
        if isinstance(module, (nn.ModuleList, nn.ModuleDict, nn.Sequential))
    }
    first: dict[str, object] = {}
    children = {call.parent.path for call in trace.calls if call.parent}
    for call in trace.calls:
        holder, _, index = call.path.rpartition(".")
        if index.isdigit() and holder in lists and call.path in children:
            known = first.setdefault(call.path, call)
            if known.out is not None and known.out.node is None:
                first[call.path] = call  # an earlier turn ran without a graph
    groups: dict[str, list] = {}
    for path, call in first.items():
        if any(path.startswith(f"{other}.") for other in first if other != path):
            continue
        out = call.out
        if out is None or len(out.shape) < 2 or stream(call) is None:
            continue
        groups.setdefault(path.rpartition(".")[0], []).append(call)
    return [(path, calls) for path, calls in _whole(groups, trace).items()]


def _whole(groups: dict[str, list], trace) -> dict[str, list]:
    """Lists of one module whose parts run in turns, as one list of whole layers."""
    beside: dict[tuple, list[str]] = {}
    for path, calls in groups.items():
        owner = calls[0].parent
        if owner.path and len(calls) > 1 and all(c.parent is owner for c in calls):
            beside.setdefault((id(owner), len(calls)), []).append(path)
    found = dict(groups)
    for paths in beside.values():
        turns = list(zip(*(groups[path] for path in paths), strict=True))
        starts = [c.start for turn in turns for c in turn]
        if len(paths) > 1 and starts == sorted(starts):
            found[paths[0]] = _layers([turn[0] for turn in turns], trace)
            for path in paths[1:]:
                del found[path]
    return found


def _layers(firsts: list, trace) -> list:
    """Calls of layers that no module holds, from those that begin each."""
    owner = firsts[0].parent
    within = [c for c in trace.calls if c.parent is owner]
    at = [within.index(c) for c in firsts]
    ends = [*at[1:], at[-1] + at[1] - at[0]]  # the last is as long as the first
    layers = []
    for begin, end in zip(at, ends, strict=True):
        parts = within[begin:end]
        first, last = parts[0], parts[-1]
        out = stream(within[end]) if end in at else last.out
        layer = replace(owner, start=first.start - 0.5, end=last.end + 0.5)
        layer.parent, layer.inputs, layer.outputs = owner, [stream(first)], [out]
        for part in parts:
            part.parent = layer
        layers.append(layer)
    return layers


def loose(path: str, calls: list) -> bool:
    """Whether no module holds a layer: its parts stand in several lists."""
    return not calls[0].path.startswith(f"{path}.")


def stream(call):
    """The input of a block that its output continues: the first of its shape."""
    for given in call.inputs:
        if given.shape == call.out.shape:
            return given
    return None


class Block:
    """The nodes of one block's call."""

    def __init__(self, trace, call, behaviours: dict):
        import torch

        self.trace, self.call, self.behaviours = trace, call, behaviours
        self.x = stream(call)
        self.size = self.x.value.numel()
        self.width = self.x.shape[-1]
        self.inner = [c for c in trace.calls if c.inside(call)]
        self.parents = {id(c.parent) for c in self.inner}
        self.opaque: list = []
        self.transparent: set[int] = {id(call)}
        self.nodes: list[Node] = [Node("x", "x", self.x)]
        others = [
            s
            for s in call.inputs
            if s is not self.x and s.shape == self.x.shape and self._same(s) is None
        ]
        others += [
            part
            for s in call.inputs
            if len(s.shape) == 4 and s.shape[-1] == self.width
            for part in self._parts(s)
        ]
        self.nodes += [
            Node("x", f"x{i}", other) for i, other in enumerate(others, start=2)
        ]
        self.ones = len(self.nodes)  # what a bias of each channel multiplies
        ones = torch.ones_like(self.x.value)
        self.nodes.append(Node("x", "1", Seen(ones, None)))
        self._vectors()
        self.vectors = {str(i) for i in range(self.ones + 1, len(self.nodes))}
        self.inner_norms: list = []
        self.idle: list = []
        self.mixtures: set[int] = set()  # of earlier states, which branches read
        self._find_opaque()
        self._sweep()
        self.result = self._output()
        if self.result is not None:
            self._merge()

    def _parts(self, several) -> list:
        """Earlier states of the stream that a block is given side by side."""
        from torch import equal as same

        if several.shape[:2] != self.x.shape[:2]:
            return []
        parts = several.value.unbind(2)
        return [Seen(p, None) for p in parts if not same(p, self.x.value)]

    def _vectors(self) -> None:
        """Vectors of the block that it may add as they are."""
        from torch import nn

        for path, module in self.call.module.named_modules():
            if isinstance(module, (nn.Linear, nn.LayerNorm)):
                continue
            for name, p in module.named_parameters(recurse=False):
                full = f"{self.call.path}.{path}".rstrip(".")
                if p.shape != (self.width,) or self.behaviours.get(full):
                    continue
                if not name.endswith("bias"):
                    continue
                value = p.detach().expand(self.x.shape).contiguous()
                self.nodes.append(Node("x", name, Seen(value, None)))

    # Modules -------------------------------------------------------------

    def norm(self, call) -> bool:
        return self.behaviours.get(call.path) is not None

    def streams(self, seen) -> bool:
        return (
            seen is not None
            and seen.value.numel() == self.size
            and seen.shape[-1] == self.width
        )

    def owner_of(self, call):
        """The outermost branch that a call is part of; the block itself if none."""
        return next((o for o in self.outermost if call.inside(o)), self.call)

    def _hidden(self, call) -> bool:
        return any(call is not o and call.inside(o) for o in self.opaque)

    def _weighty(self, call) -> bool:
        return any(True for _ in call.module.parameters()) or self.norm(call)

    def in_the_open(self, call) -> bool:
        """Whether a norm acts on a tensor of the stream's size, in no branch."""
        return self.streams(call.inputs[0]) and not self._hidden(call)

    def _candidate(self, call) -> bool:
        """A module's output that can be a term: not a sum, not a pass-through."""
        return (
            self.streams(call.out)
            and id(call) not in self.transparent
            and self._weighty(call)
            and not self._hidden(call)
        )

    def _passes(self, call) -> bool:
        """A dropout in the open: its tensor may be one that no module computed."""
        from torch import nn

        return (
            isinstance(call.module, nn.Dropout)
            and self.streams(call.out)
            and not self._hidden(call)
        )

    def _scales(self, call) -> bool:
        """A module of vectors alone, in the open: it weighs channels, no more."""
        parameters = list(call.module.parameters())
        return (
            bool(parameters)
            and all(p.ndim <= 1 for p in parameters)
            and self._candidate(call)
        )

    def _mixes(self, call) -> bool:
        """A module in the open that is given earlier states side by side."""
        return self._candidate(call) and any(
            len(s.shape) == 4 and (*s.shape[:2], s.shape[-1]) == tuple(self.x.shape)
            for s in call.inputs
        )

    def _find_opaque(self) -> None:
        """Which compound modules are branches, and which only hold the residual."""
        from snippets.norm_probe.matching import decompose

        compound = [c for c in self.inner if id(c) in self.parents and not self.norm(c)]
        for call in sorted(compound, key=lambda c: c.end):
            if not self.streams(call.out):
                self.opaque.append(call)
                continue
            outside = {"x": self.x.value}
            outside |= {
                f"given {i}": s.value
                for i, s in enumerate(call.inputs)
                if self.streams(s)
            }
            inside = {}
            for other in self.inner:
                if other is call or not self._candidate(other):
                    continue
                if other.inside(call):
                    inside[f"in {other.start}"] = other
                elif other.end < call.start:
                    outside[f"out {other.start}"] = other.out.value
            candidates = unlike(outside | {n: o.out.value for n, o in inside.items()})
            found = decompose(call.out.value, candidates, most=3)
            mixed = found and any(n in outside for n in found)
            normed = found and any(n in inside and self.norm(inside[n]) for n in found)
            if mixed or normed or (found and self._chained(call)):
                self.transparent.add(id(call))
            else:
                self.opaque.append(call)

        self.outermost = [
            o for o in self.opaque if not any(o.inside(p) for p in self.opaque)
        ]

    def _chained(self, call) -> bool:
        """A compound that is one branch after another, with a norm between them."""
        branches = [o for o in self.opaque if o.inside(call) and self.streams(o.out)]
        ends = any(equal(o.out.value, call.out.value) for o in branches)
        return ends and any(
            self.norm(c) and equal(c.inputs[0].value, o.out.value)
            for c in self.inner
            if c.inside(call) and c.inputs
            for o in branches
        )

    # Nodes ---------------------------------------------------------------

    def _same(self, seen):
        for i, node in enumerate(self.nodes):
            if node.seen.value.numel() == seen.value.numel() and equal(
                node.seen.value, seen.value
            ):
                return i
        return None

    def _reads(self, seen) -> tuple[list[int], set]:
        """(nodes that a tensor was computed from, operations on the way)."""
        index, passed = reads(seen, self._known())
        return sorted(i for i in index if i is not OUTSIDE), passed

    def _known(self) -> dict:
        given = (s.node for s in self.call.inputs if s.node is not None)
        known: dict = dict.fromkeys(given, OUTSIDE)
        for i, node in enumerate(self.nodes):
            if node.seen.node is not None:
                known[node.seen.node] = i
        return known

    def _terms(self, seen):
        from snippets.norm_probe.matching import decompose

        values = {
            str(i): n.seen.value
            for i, n in enumerate(self.nodes)
            if n.seen.value.numel() == seen.value.numel() and i not in self.mixtures
        }
        # Latest first: of two sums with equally many terms, take the nearest.
        values = dict(reversed(values.items()))
        ones = str(self.ones)
        for shared, most in (("all", 4), ("channel", 3), ("token", 3)):
            given = {n: v for n, v in values.items() if n != ones}
            if shared == "channel" and ones in values:
                given = {n: v for n, v in given.items() if n not in self.vectors}
                given[ones] = values[ones]
            found = decompose(seen.value, given, most, shared)
            if found:
                order = sorted(found, key=int)
                return {int(n): found[n] for n in order}, shared
        return None

    def place(self, seen, search: bool = True):
        """The node that holds this tensor, a new sum if need be; None if none fits."""
        at = self._same(seen)
        if at is not None:
            if seen.node is not None and self.nodes[at].seen.node is None:
                self.nodes[at].seen.node = seen.node
            return at
        if not search:
            return None
        found = self._terms(seen)
        if found is None:
            return None
        terms, shared = found
        self.nodes.append(Node("sum", "", seen, terms=terms, shared=shared))
        return len(self.nodes) - 1

    def _sweep(self) -> None:
        events = [(c.start, 0, c) for c in self.inner] + [
            (c.end, 1, c) for c in self.inner
        ]
        for _, ends, call in sorted(events, key=lambda e: e[:2]):
            if not ends:
                if self._hidden(call) and not self.norm(call):
                    continue
                if self.norm(call):
                    continue
                for given in call.inputs:
                    if self.streams(given):
                        self.place(given)
            elif self.norm(call):
                self._add_norm(call)
            elif self._mixes(call) and self._add_mixtures(call):
                continue
            elif self._passes(call) or self._scales(call):
                if self.place(call.out) is None:
                    index, _ = self._reads(call.out)
                    name = label(self._owner(call), self.call)
                    self.nodes.append(Node("branch", name, call.out, call, reads=index))
            elif self._candidate(call) and self._same(call.out) is None:
                index, _ = self._reads(call.out)
                name = label(self._owner(call), self.call)
                self.nodes.append(Node("branch", name, call.out, call, reads=index))

    def _add_mixtures(self, call) -> bool:
        """Whether all that a module gives are sums of states, none of the others."""
        for given in call.outputs:
            if (at := self.place(given)) is None:
                return False
            self.mixtures.add(at)
        return True

    def _owner(self, call):
        """The module to name a bare leaf by: the nearest that is not the block."""
        at = call
        if re.fullmatch(r"query|key|value|[qkv]_proj", at.path.rpartition(".")[2]):
            return at.parent if at.parent is not self.call else at
        if re.search(r"dense|proj|linear|wo|out|\d$", at.path.rpartition(".")[2]):
            while at.parent is not None and at.parent is not self.call:
                if at.parent.out is None or equal(
                    at.parent.out.value, self.call.out.value
                ):
                    break  # it holds the block, and more than this branch
                at = at.parent
        return at

    def _add_norm(self, call) -> None:
        given = call.inputs[0] if call.inputs else None
        hidden = self._hidden(call)
        at = None
        if self.streams(given):
            at = self.place(given)
        if at is None:
            index, passed = self._reads(given)
            wide = (
                len(given.shape) == 3
                and given.shape[-1] > self.width
                and given.shape[-1] % self.width == 0
                and not passed & set(MATRIX)
            )
            if not wide:
                self.inner_norms.append(call)
                return
            self.nodes.append(Node("wide", "", given, reads=index))
            at = len(self.nodes) - 1
        if hidden and self.nodes[at].kind == "branch":
            self.inner_norms.append(call)
            return
        if self._same(call.out) is None:
            node = Node("norm", call.path, call.out, call, terms={at: None})
            self.nodes.append(node)
        elif self._same(call.out) == at:  # a norm of what is normed already
            self.idle.append(call)

    def _output(self):
        at = self.place(self.call.out)
        return at

    def _merge(self) -> None:
        """A branch that only goes on with another one of its label is one with it."""
        for i in range(len(self.nodes)):
            node = self.nodes[i]
            if node.kind != "branch":
                continue
            while True:
                alone = [
                    j
                    for j in node.reads
                    if self.nodes[j].kind == "branch"
                    and self.nodes[j].name == node.name
                    and self._readers(j) == [i]
                ]
                if not alone:
                    break
                rest = [j for j in node.reads if j not in alone]
                rest += [k for j in alone for k in self.nodes[j].reads]
                node.reads = sorted(set(rest))

    def _readers(self, i: int) -> list[int]:
        used = self.used()
        return [j for j in used if i in [*self.nodes[j].terms, *self.nodes[j].reads]]

    # Words ---------------------------------------------------------------

    def short(self, path: str) -> str:
        """The shortest tail of a path, no number, that names one norm of this block."""
        inside = path[len(self.call.path) + 1 :].split(".")
        others = [
            n.call.path[len(self.call.path) + 1 :].split(".")
            for n in self.nodes
            if n.kind == "norm" and n.call.path != path
        ]
        for k in range(1, len(inside) + 1):
            numbers = all(part.isdigit() for part in inside[-k:])
            if not numbers and all(other[-k:] != inside[-k:] for other in others):
                return ".".join(inside[-k:])
        return ".".join(inside)

    def used(self) -> list[int]:
        """Indices of nodes that the output depends on, in order."""
        todo, found = [self.result], set()
        while todo:
            i = todo.pop()
            if i in found or i is None:
                continue
            found.add(i)
            todo += list(self.nodes[i].terms) + self.nodes[i].reads
        return sorted(found)

    def branches(self) -> list[Node]:
        return [self.nodes[i] for i in self.used() if self.nodes[i].kind == "branch"]

    def equations(self) -> list[str]:
        """The block as equations, in order of computation."""
        nodes, lines = self.nodes, []
        used = self.used()
        for node in nodes:
            node.uses, node.letter = 0, ""
        for i in used:
            for j in [*nodes[i].terms, *nodes[i].reads]:
                nodes[j].uses += 1
        letters = iter(LETTERS)

        def text(i: int) -> str:
            node = nodes[i]
            return node.letter or body(i)

        def body(i: int) -> str:
            node = nodes[i]
            if node.kind == "x":
                return node.name
            if node.kind == "norm":
                (at,) = node.terms
                return f"N[{self.short(node.name)}]({text(at)})"
            if node.kind == "wide":
                return f"concat({', '.join(text(j) for j in node.reads)})"
            if node.kind == "branch":
                return f"{node.name}({', '.join(text(j) for j in node.reads)})"
            return self.sum_of({text(j): c for j, c in node.terms.items()})

        for i in used:
            node = nodes[i]
            if i == self.result:
                lines.append(f"y = {body(i)}")
                continue
            if node.kind == "sum":
                (only,) = (
                    [j for j in used if i in [*nodes[j].terms, *nodes[j].reads]]
                    if node.uses == 1
                    else (None,)
                )
                if only is not None and nodes[only].kind == "norm":
                    continue
                name = True
            elif node.kind == "norm":
                (at,) = node.terms
                name = (
                    node.uses > 1 and nodes[at].kind == "sum" and not nodes[at].letter
                )
            else:
                name = node.kind == "branch" and node.uses > 1
            if name:
                letter = next(letters)
                lines.append(f"{letter} = {body(i)}")
                node.letter = letter
        return lines

    def sum_of(self, terms: dict) -> str:
        """A combination in words, its coefficients by the names of stored tensors."""
        from snippets.norm_probe.matching import written

        names = {text: self._stored(text, values) for text, values in terms.items()}
        if len(terms) > 1 and len(set(names.values())) == 1:
            (name,) = set(names.values())
            if name and name.endswith("·"):
                return f"{name}({' + '.join(terms)})"
        text = written(terms)
        for term, name in names.items():
            if name:
                alone = written({term: terms[term]})
                new = name[:-1] if term == "1" else f"{name}{term}"
                text = re.sub(rf"(?<!\S){re.escape(alone)}(?!\S)", new, text)
        return text

    def _stored(self, term: str, values) -> str | None:
        """The name of a parameter or buffer of the block that a coefficient is."""
        kept = {**dict(self.call.module.named_parameters())}
        state = set(self.call.module.state_dict())
        kept |= {n: b for n, b in self.call.module.named_buffers() if n in state}
        for name, tensor in kept.items():
            value = tensor.detach().double().reshape(-1)
            if value.numel() != values.numel() or not tensor.is_floating_point():
                continue
            if values.numel() == 1 and values.abs() in (0, 1):
                continue
            if (value - values).abs().max() <= 1e-4 * value.abs().max():
                sign = "·" if values.numel() == 1 else "⊙"
                return name.removesuffix(".weight").rpartition(".")[2] + sign
        return None

    # Placement -----------------------------------------------------------

    def flatten(self, i: int) -> dict[int, float]:
        """A node as terms that are not sums themselves."""
        node = self.nodes[i]
        if node.kind != "sum":
            return {i: 1.0}
        found: dict[int, float] = {}
        for j in node.terms:
            found |= self.flatten(j)
        return found

    def branch_places(self) -> list[tuple[str, str]]:
        """(branch label, its placement) in order of computation."""
        nodes, used = self.nodes, self.used()
        normed = {}  # what a norm is applied to, as flat terms
        for i in used:
            if nodes[i].kind == "norm":
                (at,) = nodes[i].terms
                normed[i] = set(self.flatten(at)) if nodes[at].kind == "sum" else {at}
        residual = {
            j
            for i in used
            if nodes[i].kind == "sum"
            for j in nodes[i].terms
            if len(nodes[i].terms) > 1
        }
        places = []
        y_norm = nodes[self.result].kind == "norm"
        for i in used:
            readers = self._readers(i)
            if nodes[i].kind != "branch" or (
                len(readers) == 1 and self._goes_on(readers[0])
            ):
                continue
            before = [j for j in self.entries(i) if nodes[j].kind == "norm"]
            # A norm on this branch alone, then added; or on the sum with it.
            over = [flat for flat in normed.values() if i in flat]
            out_norm = any(all(nodes[j].kind == "branch" for j in f) for f in over)
            sum_norm = bool(over)
            if out_norm:
                place = "sandwich" if before else "branch-output"
            elif sum_norm and y_norm:
                place = "post"
            elif any(j in residual for j in before):
                place = "residual-after-norm"
            else:
                place = "pre" if before else "none"
            places.append((self.deepest(i), place))
        return list(dict.fromkeys(places))  # routed and shared experts are one FFN

    def _goes_on(self, i: int) -> bool:
        """Whether a branch's one reader is a branch, or a norm in front of one."""
        after = self._readers(i)
        return self.nodes[i].kind == "branch" or (
            self.nodes[i].kind == "norm"
            and bool(after)
            and all(self.nodes[j].kind == "branch" for j in after)
        )

    def deepest(self, i: int) -> str:
        """The label of a chain of branches: that of its first proper branch."""
        node = self.nodes[i]
        for j in node.reads:
            inner = self.nodes[j]
            if inner.kind == "branch" and self._readers(j) == [i]:
                name = self.deepest(j)
                if name not in AUXILIARY:
                    return name
        return node.name

    def entries(self, i: int) -> list[int]:
        """What a branch reads, through the branches that it goes on with."""
        found = []
        for j in self.nodes[i].reads:
            node = self.nodes[j]
            found += self.entries(j) if node.kind == "branch" else [j]
        return found

    def placement(self) -> str:
        if self.mixtures & set(self.used()):
            return "multi-stream"
        places = self.branch_places()
        kinds = {kind for name, kind in places if name not in AUXILIARY}
        if not kinds:
            return "other"
        if kinds == {"pre"} and len(places) > 1:
            reads_ = [
                set(self.entries(i))
                for i in self.used()
                if self.nodes[i].kind == "branch"
                and not any(self.nodes[r].kind == "branch" for r in self._readers(i))
            ]
            stream_ = []
            for indices in reads_:
                at = {
                    next(iter(self.nodes[j].terms))
                    for j in indices
                    if self.nodes[j].kind == "norm"
                }
                stream_.append(frozenset(at))
            if len(set(stream_)) == 1:
                return "pre-parallel"
        return kinds.pop() if len(kinds) == 1 else "other"

    def _auxiliary(self, at: int) -> bool:
        """Whether a norm's input is no proper branch: a per-layer input, say."""
        branches = [j for j in self.flatten(at) if self.nodes[j].kind == "branch"]
        return all(self.deepest(j) in AUXILIARY for j in branches)

    def sites(self) -> list[tuple[str, object]]:
        """(site, call) of the norms on the residual stream."""
        nodes, used, found = self.nodes, self.used(), []
        words = {
            "Attention": "attention",
            "CrossAttention": "cross",
            "FFN": "ffn",
        }
        for i in used:
            if nodes[i].kind != "norm":
                continue
            readers = [
                words.get(self.deepest(j), "mixer")
                for j in used
                if nodes[j].kind == "branch"
                and i in self.entries(j)
                and not any(nodes[r].kind == "branch" for r in self._readers(j))
            ]
            (at,) = nodes[i].terms
            behind = [
                words.get(self.deepest(j), "mixer")
                for j in self.flatten(at)
                if nodes[j].kind == "branch"
            ]
            alone = all(nodes[j].kind == "branch" for j in self.flatten(at))
            kinds = dict.fromkeys(readers)
            post = nodes[self.result].kind == "norm"
            if behind and (alone or post) and self._auxiliary(at):
                site = "other"
            elif behind and (alone or post) and not (alone and kinds):
                site = f"{behind[-1]}-out"
            elif len(kinds) > 1:
                site = "shared-in"
            elif kinds:
                site = f"{next(iter(kinds))}-in"
            else:
                site = "other"
            found.append((site, nodes[i].call))
        return found


def equal(a, b) -> bool:
    if a.numel() != b.numel():
        return False
    a, b = a.reshape(-1).double(), b.reshape(-1).double()
    return bool((a - b).norm() <= 1e-6 * a.norm())


def unlike(candidates: dict) -> dict:
    """Candidates without those that repeat an earlier one."""
    found: dict = {}
    for name, value in candidates.items():
        if not any(equal(value, other) for other in found.values()):
            found[name] = value
    return found
