"""Two models, each with the weights that it was loaded with: what differs, and why."""

import re
from dataclasses import dataclass, field

from scripts.examine import flow, rounding, unusual_norms
from scripts.examine.load import Loaded
from scripts.examine.probe import Probed
from scripts.experiments.atlas import examine as atlas
from scripts.experiments.atlas.blocks import equal

SAME = 1e-4  # of the largest element: what folding in float32 rounds


@dataclass
class Stored:
    """A model's weights as they came, and one pass with them."""

    state: dict
    given: dict
    out: object = None
    seen: list = field(default_factory=list)
    noise: dict = field(default_factory=dict)  # what rounding gives, by module
    rounding: float = 0.0  # and at the output


def as_stored(loaded: Loaded, given: dict | None = None) -> Stored:
    """A pass with the weights that a model came with."""
    model = loaded.model
    state = {n: v.detach().clone() for n, v in model.state_dict().items()}
    found = Stored(state, loaded.given if given is None else given)
    found.out, found.seen = flow.ran(model, found.given)
    if given is None:
        found.noise, found.rounding = rounding.noise_of(
            model, found.given, found.out, found.seen
        )
    return found


# Which tensor is which ----------------------------------------------------------------


def matched(ours: dict, theirs: dict) -> tuple[dict[str, str], list[str]]:
    """({name here: name there}, names here that were matched by place alone).

    By name and shape; then by equal values; then, layer by layer, by shape in the order
    of registration, which is sure only where one of a shape is left.
    """
    pairs = {
        n: n for n, v in ours.items() if n in theirs and theirs[n].shape == v.shape
    }
    left = [n for n in theirs if n not in pairs]
    for name in [n for n in ours if n not in pairs]:
        same = [n for n in left if _identical(ours[name], theirs[n])]
        if len(same) == 1 and ours[name].numel() > 1 and ours[name].std() > 0:
            pairs[name] = same[0]
            left.remove(same[0])
    unsure = []
    groups: dict = {}
    for name in [n for n in ours if n not in pairs]:
        groups.setdefault(_place(name, ours[name]), ([], []))[0].append(name)
    for name in left:
        groups.setdefault(_place(name, theirs[name]), ([], []))[1].append(name)
    for mine, others in groups.values():
        if len(mine) == len(others):
            pairs |= dict(zip(mine, others, strict=True))
            unsure += mine if len(mine) > 1 else []
    return pairs, unsure


def _identical(a, b) -> bool:
    return a.shape == b.shape and bool((a == b).all())


def _place(name: str, value) -> tuple:
    numbers = re.findall(r"(?<=\.)\d+(?=\.)", f".{name}")
    return tuple(numbers[:1]), tuple(value.shape)


# Streams and output -------------------------------------------------------------------


def passes(ours: Probed, theirs: Probed, one: Stored, two: Stored) -> list[list]:
    """[key, *values] on the output and on the stream after each layer."""
    apart = None
    if one.out is not None and two.out is not None and one.out.shape == two.out.shape:
        apart = rounding.distance(one.out, two.out)
    floor = max(rounding.ABOVE * one.rounding, 1e-6)
    sizes = f"{apart or 0:.2g}", f"{floor / rounding.ABOVE:.2g}"
    first = _first_layer(ours, theirs, one, two)
    if apart is None:
        said = [["own-shapes"]]
    elif apart <= floor:
        said = [["own-agree" if first == [] else "own-output", *sizes]]
    else:
        said = [["own-differ", *sizes]]
    if first is None:
        return [*said, ["own-layers"]]
    if not first and apart is not None and apart > floor:
        return [*said, ["own-behind"]]
    return [*said, *first]


def _first_layer(ours, theirs, one, two) -> list[list] | None:
    """Where the streams part first; [] if nowhere, None if layers were not compared."""
    mine, other = (
        {path: (given, out) for path, given, out in reversed(s.seen) if out}
        for s in (one, two)
    )
    lengths = [[len(calls) for _, calls in p.lists] for p in (ours, theirs)]
    if lengths[0] != lengths[1]:
        return None
    compared = 0
    for (_, calls), (_, others) in zip(ours.lists, theirs.lists, strict=True):
        for number, (a, b) in enumerate(zip(calls, others, strict=True)):
            if a.path not in mine or b.path not in other:
                continue
            (given, out), (taken, got) = mine[a.path], other[b.path]
            if out[0].shape != got[0].shape:
                return None
            compared += 1
            if not number and given and taken and given[0].shape == taken[0].shape:
                early = rounding.distance(given[0], taken[0])
                if early > rounding.FLOOR * 10:
                    return [["own-before", f"{early:.2g}"]]
            apart = rounding.distance(out[0], got[0])
            floor = max(rounding.floor(one.noise, a.path), 1e-6)
            if apart > floor:
                sizes = f"{apart:.2g}", f"{floor / rounding.ABOVE:.2g}"
                return [["own-first", number, a.path, *sizes]]
    return [] if compared else None


# Gains and what reads them ------------------------------------------------------------


@dataclass
class Gain:
    """A norm's gain as stored, and the matrices that its output is multiplied by."""

    path: str
    form: str
    w: object  # as stored
    readers: dict  # module's path -> weight with the norm's features on the last axis

    @property
    def effective(self):
        return self.w + 1 if self.form == "1+w" else self.w


def gains(found: Probed, stored: Stored) -> list[Gain]:
    """The gains of the recognised norms, in order of their calls."""
    from snippets.norm_probe.behaviour import split_parameters

    names = {id(p): n for n, p in found.loaded.model.named_parameters()}
    made, seen = [], set()
    for call in found.trace.calls:
        behaviour, gated = found.known.get(call.path, (None, True))
        if gated or call.path in seen or "#" in call.path:
            continue
        seen.add(call.path)
        alone, _, x = atlas._alone(call, 0.0)
        own = dict(alone.named_parameters())
        found_gains, _ = split_parameters(alone, unusual_norms._numbers(x.shape))
        vectors = [names.get(id(own[n])) for n in found_gains]
        if behaviour.gain not in ("w", "1+w") or len(vectors) != 1 or not vectors[0]:
            continue
        w = stored.state[vectors[0]].double().reshape(-1)
        readers = {
            reader.path: weight
            for reader in found.trace.calls
            if reader.start > call.start and reader.inputs
            for weight in [_matrix(reader, names, stored, w.numel())]
            if weight is not None and equal(reader.inputs[0].value, call.out.value)
        }
        made.append(Gain(call.path, behaviour.gain, w, readers))
    return made


def _matrix(call, names: dict, stored: Stored, width: int):
    """The weight of a call's own module with ``width`` inputs; None if it has none."""
    own = [p for p in call.module._parameters.values() if p is not None and p.ndim == 2]
    if len(own) != 1 or id(own[0]) not in names:
        return None
    weight = stored.state[names[id(own[0])]].double()
    if weight.shape[1] == width:
        return weight
    return weight.T if weight.shape[0] == width else None


def near(a, b) -> bool:
    """Whether two tensors agree as far as folding rounds."""
    if a.shape != b.shape:
        return False
    return bool((a - b).abs().max() <= SAME * b.abs().max().clamp_min(1e-30))


def reasons(mine: list[Gain], others: list[Gain]) -> list[list]:
    """[key, place, *details] of gains that are not those of the other model."""
    pairs = _pairs(mine, others)
    changed = [(a, b) for a, b in pairs if not near(a.effective, b.effective)]
    found, swapped = [], set()
    for i, (a, b) in enumerate(changed):
        for c, d in changed[i + 1 :]:
            same = near(a.effective, d.effective) and near(c.effective, b.effective)
            if same and a.path not in swapped and c.path not in swapped:
                swapped |= {a.path, c.path}
                found.append(["exchanged", f"{a.path} ↔ {c.path}"])
    for a, b in changed:
        if a.path in swapped:
            continue
        found.append(_why(a, b, pairs))
    told = {entry[1] for entry in found} | swapped
    for a, b in pairs:
        scale = _scale(a, b)
        if any(
            near(d.effective / c.effective, scale)
            for c, d in changed
            if scale is not None
        ):
            continue  # told of the other norm
        if scale is not None and a.path not in told and near(a.effective, b.effective):
            found.append(["unread-scale", a.path])
    return found


def _why(a: Gain, b: Gain, pairs) -> list:
    """What became of one gain."""
    readers = _read_by(a, b)
    taken = {n: near(x * a.effective, y * b.effective) for n, (x, y) in readers.items()}
    if readers and all(taken.values()):
        return ["folded", a.path]
    if any(taken.values()):
        left = [n.rpartition(".")[2] for n, done in taken.items() if not done]
        return ["left-out", a.path, ", ".join(left)]
    apart = a.effective - b.effective
    for key, step in (("one-more", 1.0), ("one-less", -1.0)):
        if bool((apart - step).abs().max() < 1e-3):
            return [key, a.path]
    scale = _scale(a, b)
    if scale is not None and a.form == "1+w" and near(a.w * scale, b.w):
        return ["offset-scaled", a.path]
    ratio = b.effective / a.effective
    for c, d in pairs:
        other = _scale(c, d) if c.path != a.path else None
        if other is not None and near(ratio, other):
            return ["elsewhere", a.path, ", ".join(_short(c.readers))]
    return ["other-gain", a.path, f"{_largest(a.effective, b.effective):.2g}"]


def _short(readers: dict) -> list[str]:
    return [n.rpartition(".")[2] for n in readers]


def _largest(a, b) -> float:
    return float(((a - b).abs() / b.abs().clamp_min(1e-3)).max())


def _read_by(a: Gain, b: Gain) -> dict:
    """{reader: (weight here, weight there)}, by name, else in order."""
    names = set(a.readers) & set(b.readers)
    if not names:
        both = zip(a.readers.items(), b.readers.values(), strict=False)
        return {n: (x, y) for (n, x), y in both if x.shape == y.shape}
    return {n: (a.readers[n], b.readers[n]) for n in a.readers if n in names}


def _scale(a: Gain, b: Gain):
    """The factor on each feature that all readers took; None if there is none."""
    for x, y in _read_by(a, b).values():
        if x.shape != y.shape or near(x, y):
            return None
        factor = (x * y).sum(0) / y.square().sum(0)
        if not near(x, y * factor):
            return None
        found = factor
    return found if a.readers and _read_by(a, b) else None


def _pairs(mine: list[Gain], others: list[Gain]) -> list[tuple[Gain, Gain]]:
    """The norms of both: by path, else in order where there are as many."""
    there = {g.path: g for g in others}
    by_name = [(g, there[g.path]) for g in mine if g.path in there]
    if len(by_name) < len(mine) and len(mine) == len(others):
        by_name = list(zip(mine, others, strict=True))
    return [(a, b) for a, b in by_name if a.w.shape == b.w.shape]


def compared(ours: Probed, theirs: Probed, one: Stored, two: Stored) -> list[list]:
    """All there is to say of both models with their own weights."""
    said = passes(ours, theirs, one, two)
    pairs, unsure = matched(one.state, two.state)
    by_other = sum(a != b for a, b in pairs.items())
    if by_other or len(pairs) < max(len(one.state), len(two.state)):
        left = len(one.state) + len(two.state) - 2 * len(pairs)
        said.append(["mapped", len(pairs) - by_other, by_other, len(unsure), left])
    mine, others = gains(ours, one), gains(theirs, two)
    why = reasons(mine, others)
    groups: dict = {}
    for key, place, *details in why:
        groups.setdefault((key, *details), []).append(place)
    said += [[key, places, *details] for (key, *details), places in groups.items()]
    if not why:
        differ = [
            a for a, b in pairs.items() if not near(one.state[a].double(), two.state[b])
        ]
        if differ:
            said.append(["values", differ])
    return said
