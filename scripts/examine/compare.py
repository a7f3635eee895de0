"""What differs from another model or from an architecture of the atlas, and where."""

import re

from scripts.examine import flow, rounding, stored
from scripts.examine.load import Refusal, bound
from scripts.examine.probe import Probed, probe

FIELDS = {3: "kind", 4: "gain", 5: "bias", 6: "eps", 7: "cast", 8: "fp16"}


def against(found: Probed, load, other: str, options: dict, own=None) -> dict:
    """{"name", "differences", "stored", "shared"}: see the functions of these names.

    ``own``: this model's weights as they came; without, "stored" is empty.
    """
    if ":" not in other:
        rows = _of_atlas(other)
        return {
            "name": other,
            "differences": differences(found.rows, rows),
            "stored": [],
            "shared": [],
        }
    options = {n: v for n, v in options.items() if n != "transformers"}
    loaded = load(other, options)
    two = own and _on_the_same(loaded, own)
    theirs = probe(loaded)
    said = stored.compared(found, theirs, own, two) if two else []
    if own and not two:
        said = [["own-input"]]
    return {
        "name": other,
        "differences": differences(found.rows, theirs.rows),
        "stored": said,
        "shared": shared(found, theirs),
    }


def _on_the_same(loaded, own):
    """A pass of the other model on this one's input; None if it does not take it."""
    try:
        given = bound(loaded.model, tuple(own.given.values()))
        return stored.as_stored(loaded, given)
    except (Refusal, RuntimeError, TypeError, ValueError, IndexError):
        return None


def _of_atlas(name: str) -> list[dict]:
    from difflib import get_close_matches

    from scripts.site.atlas import rows

    groups = rows.groups()
    if name not in groups:
        near = get_close_matches(name, groups, 3, 0.3)
        hint = f"; near it: {', '.join(near)}" if near else ""
        raise Refusal(f"the atlas has no row {name!r}{hint}; or give module:factory")
    found = [row for row in groups[name] if row["status"] != "unresolved"]
    if not found:
        raise Refusal(f"the atlas did not resolve {name!r}")
    return found


# What the rows say ------------------------------------------------------------------


def nameless(equations: list[str]) -> str:
    """Equations with the norms' names left out."""
    return "; ".join(re.sub(r"N\[[^\]]*\]", "N", line) for line in equations)


def differences(ours: list[dict], theirs: list[dict]) -> list[list]:
    """[what, site, ours, theirs, layers] of what differs between rows.

    Layers are compared with those of the same number where both have as many; else
    a row with the nearest of the other's.
    """
    mine, other = by_layer(ours), by_layer(theirs)
    groups: dict = {}
    for number, row in mine.items():
        if set(mine) == set(other):
            found = between(row, other[number])
        else:
            found = min((between(row, b) for b in theirs), key=len)
        for entry in found:
            groups.setdefault(repr(entry), (entry, []))[1].append(number[1])
    return [
        [*entry, [] if len(layers) == len(mine) else layers]
        for entry, layers in groups.values()
    ]


def by_layer(rows: list[dict]) -> dict[tuple, dict]:
    """(list, number of a layer) -> its row."""
    return {(row["layer"], i): row for row in rows for i in row["layers"]}


def between(a: dict, b: dict) -> list[list]:
    """[what, site, ours, theirs] of what differs between two rows."""
    found = []
    if a["placement"] != b["placement"]:
        found.append(["placement", "", _placement(a), _placement(b)])
    one, two = nameless(a["equations"]), nameless(b["equations"])
    if one != two:
        found.append(["equations", "", one, two])
    mine, other = _by_site(a), _by_site(b)
    for site in dict.fromkeys(norm[0] for norm in [*a["norms"], *b["norms"]]):
        if site not in mine or site not in other:
            kinds = (_kind(norms.get(site)) for norms in (mine, other))
            found.append(["norm", site, *kinds])
            continue
        for at, field in FIELDS.items():
            values = mine[site][at], other[site][at]
            if field == "eps":
                values = _eps(a, mine[site]), _eps(b, other[site])
            if values[0] != values[1]:
                found.append([field, site, *values])
    return found + [["qk", *entry] for entry in _qk(a, b)]


def _by_site(row: dict) -> dict[str, list]:
    return {norm[0]: norm for norm in reversed(row["norms"])}


def _placement(row: dict) -> str | None:
    """A placement; where the branches differ, how."""
    reason = row.get("differ", row["reason"]) or ""
    differ = row["placement"] == "other" and reason.startswith("branches differ")
    return reason if differ else row["placement"]


def _eps(row: dict, norm: list):
    """An epsilon, or [where it stands, its size] if it is no summand of the squares."""
    apart = row.get("apart", {}).get(norm[1].rpartition(".")[2])
    return apart if norm[6] is None else norm[6]


def _kind(norm) -> str | None:
    return norm and norm[3]


def _qk(a: dict, b: dict):
    """(tensor, ours, theirs) where scope or side of RoPE differ, of norms in both."""
    mine, other = ({e[0]: e[3:] for e in row["qk"]} for row in (a, b))
    for tensor in mine:
        if tensor in other:
            for one, two in zip(mine[tensor], other[tensor], strict=True):
                if one != two and "none" not in (one, two):
                    yield tensor, one, two


# With the same weights --------------------------------------------------------------


def shared(ours: Probed, theirs: Probed) -> list[list]:
    """Where the streams first part if both have the weights of the first."""

    state, other = (p.loaded.model.state_dict() for p in (ours, theirs))
    pairs, _ = stored.matched(state, other)
    for key in dict.fromkeys([*state, *other]):
        if key not in pairs and key not in pairs.values():
            return [["not-shared", ["missing", key]]]
    theirs.loaded.model.load_state_dict({pairs[n]: v for n, v in state.items()})
    model, given = ours.loaded.model, ours.loaded.given
    values = tuple(given.values())
    try:
        same = bound(theirs.loaded.model, values)
        out, mine = flow.ran(model, given)
        got, yours = flow.ran(theirs.loaded.model, same)
    except (Refusal, RuntimeError, TypeError, ValueError):
        return [["not-shared", ["other-input", ""]]]
    noise, _ = rounding.noise_of(model, given, out, mine)
    index = {path: (a, b) for path, a, b in rounding.pairs(mine, yours)}

    for _, calls in ours.lists:
        first = calls[0]
        early = _given_of(mine, yours, first.path)
        if early > rounding.floor(noise, first.path):
            return [["before", f"{early:.2g}"]]
        for number, call in enumerate(calls):
            if call.path not in index:
                continue
            apart, floor = (
                rounding.distance(*index[call.path]),
                rounding.floor(noise, call.path),
            )
            if apart > floor:
                sizes = f"{apart:.2g}", f"{floor / rounding.ABOVE:.2g}"
                said = ["first", number, call.path, *sizes]
                inner = _first_inside(mine, yours, call.path, noise)
                return [said, *([["first-module", inner]] if inner else [])]
    if out is not None and got is not None and rounding.distance(out, got) > 1e-5:
        return [["behind"]]
    return [["agree"]]


def _given_of(mine, yours, path: str) -> float:
    """How far apart the inputs of a module are."""
    one = next((given for p, given, _ in mine if p == path), None)
    two = next((given for p, given, _ in yours if p == path), None)
    if not one or not two or one[0].shape != two[0].shape:
        return 0.0
    return rounding.distance(one[0], two[0])


def _first_inside(mine, yours, path: str, noise: dict) -> str:
    """The innermost module of a layer that is given the same and returns another."""
    other = {p: (given, out) for p, given, out in reversed(yours)}
    for p, given, out in mine:
        if not p.startswith(f"{path}.") or p not in other:
            continue
        theirs, got = other[p]
        pairs = list(zip(given, theirs, strict=False))
        if any(
            a.shape != b.shape or rounding.distance(a, b) > rounding.FLOOR
            for a, b in pairs
        ):
            continue
        comparable = out and got and out[0].shape == got[0].shape
        if comparable and rounding.distance(out[0], got[0]) > rounding.floor(noise, p):
            return p
    return ""
