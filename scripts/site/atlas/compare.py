"""Two rows of the atlas against each other: what the script is given, and the table.

The comparison itself is assets/compare.js, pure functions of the data made here. The
build runs it in V8 for the table of pairs, the browser for any pair a reader picks, so
that there is one account of what differs.
"""

import html
import json
import posixpath
import re
from collections import Counter
from urllib.parse import quote

from mkdocs.structure.files import File

from scripts.site.atlas import compare_words, drawing
from scripts.site.atlas import rows as atlas
from scripts.site.atlas.table import breakable
from scripts.site.atlas.words import WORDS, decimal, reason_words
from scripts.site.reading.javascript import running
from scripts.site.reading.source import ROOT, SourceError, embedded

SCRIPT = ROOT / "docs" / "theme" / "overrides" / "assets" / "compare.js"
SAFE = ":_-."  # what stays as it is in an address
URI = "assets/atlas-compare.js"
PAGE, PORT = "practice/model-atlas.md", "practice/port-a-norm.md"
# A part's form, in this order; one that is not known, or makes no sense, is "".
FORM = ("kind", "gain", "bias", "eps", "cast", "dtype")
ANNOTATION = re.compile(r"  # \(\d+\)!$", re.MULTILINE)
BRANCHES = {"Attention": "attention", "FFN": "ffn", "CrossAttention": "cross"}
PAIRS = (  # what people ask for: code for the one, weights of the other
    ("llama", "gemma3_text"),
    ("llama", "qwen3"),
    ("llama", "olmo2"),
    ("llama", "glm4"),
    ("llama", "gpt_oss"),
    ("llama", "cohere2"),
    ("llama", "gemma4_text"),
    ("gpt2", "llama"),
    ("gemma2", "gemma3_text"),
    ("qwen2", "qwen3"),
    ("mistral", "phi3"),
    ("deepseek_v3", "kimi_linear:full_attention"),
    ("bert", "modernbert"),
)


def parts(row: dict) -> dict[str, dict]:
    """{place: form, name, and for tensors of attention width and side of RoPE}."""
    found: dict[str, dict] = {}
    own = "Attention" in branches(row)
    for norm in atlas.norms(row):
        place = norm["site"]
        if not own:  # the branch that mixes positions, whatever does it
            place = place.replace("mixer", "attention")
        if row["placement"] == "post":  # of the sum, not of what is added
            place = re.sub("-out$", "-sum", place)
        if place == "other" or found.get(place, norm)["name"] != norm["name"]:
            place = f"{place} {norm['name']}"
        cast, _, dtype = (norm["cast"] or "").partition(" → ")
        form = (
            norm["kind"],
            norm["gain"],
            "yes" if norm["bias"] else "no",
            "" if norm["eps"] is None else decimal(norm["eps"]),
            cast,
            dtype,
        )
        found.setdefault(place, {"name": norm["name"], "form": form})
    for tensor, kind, gain, scope, rope in row["qk"] or ():
        plain = {"name": "", "form": (kind, gain, "", "", "", "")}
        found.setdefault(tensor, plain).update(scope=scope, rope=rope)
    return found


def boxes(row: dict, known: dict) -> dict[str, str]:
    """{what a norm's box in the drawing says: its place}."""
    found = {
        name: _place(name, "", known)
        for sides in atlas.within(row).values()
        for names in sides
        for name in names
    }
    for line in row["equations"] or ():
        try:
            _, terms = drawing.parse(line)
        except drawing.EquationError:
            return {}
        _walk(terms, (), found, known)
    return {label: place for label, place in found.items() if place}


def _walk(terms, outer, found, known) -> None:
    for term in terms:
        chain = (*term.calls, *outer)
        at = next((i for i, c in enumerate(chain) if not c.startswith("N[")), -1)
        side = BRANCHES.get(chain[at] if at >= 0 else _branch(term), "mixer")
        for i, call in enumerate(chain):
            if call.startswith("N["):
                where = f"{side}-{'in' if i < at else 'out'}"
                found.setdefault(call[2:-1], _place(call[2:-1], where, known))
        if isinstance(term.inner, tuple):
            _walk(term.inner, () if term.calls else outer, found, known)


def _branch(term) -> str:
    """The first branch in the sum that a norm is taken of."""
    inner = term.inner if isinstance(term.inner, tuple) else ()
    calls = (call for each in inner for call in each.calls)
    return next((call for call in calls if not call.startswith("N[")), "")


def _place(label: str, where: str, known: dict) -> str | None:
    """The place of the norm of this name, the one at ``where`` before others."""
    same = [p for p, part in known.items() if f".{label}".endswith(f".{part['name']}")]
    there = [where, where.replace("mixer", "attention")]
    there += [re.sub("-out$", "-sum", place) for place in there]
    return next((p for p in same if p.split()[0] in there), next(iter(same), None))


def factors(row: dict) -> list[str]:
    """0.5·Attention, 2·x: what the equations multiply by a number of their own."""
    found: dict[str, None] = {}
    for line in row["equations"] or ():
        for factor, what in re.findall(r"(\([\d.]+/?√?L\)|[\w.]+)[·⊙](\w+|\()", line):
            found[f"{factor.strip('()')}·{what.strip('(') or '(…)'}"] = None
    return list(found)


def branches(row: dict) -> list[str]:
    text = " ".join(row["equations"] or ())
    return list(dict.fromkeys(re.findall(r"\b(?!concat)([A-Za-z]\w*)(?=\()", text)))


def _set(pairs) -> list[str]:
    """Settings that are on; where a function has no setting, its line says little."""
    return [f"{k} = {v:g}" for k, v in pairs or () if v is not None]


def feature_rows(language: str) -> list[dict]:
    """The rows, those of one architecture that read alike made one; codes, no words."""
    found: dict[str, dict] = {}
    for row in atlas.rows():
        known = parts(row)
        said = {
            "name": row["architecture"],
            "status": row["status"],
            "reason": reason_words(row["reason"], language) if row["reason"] else "",
            "placement": row["placement"] or "unresolved",
            "branches": branches(row),
            "mixer": "Attention" not in branches(row),
            "parts": known,
            "boxes": boxes(row, known),
            "factors": [] if row["placement"] == "multi-stream" else factors(row),
            "caps": _set(row["caps"]),
            "multipliers": _set(row["multipliers"]),
            "functional": list(row["functional"] or ()),
            "overflow": any(n["fp16"] is False for n in atlas.norms(row)),
            "equations": row["equations"] or [],
        }
        key = json.dumps(said, sort_keys=True)
        own = {"layers": [], "indices": [], "within": atlas.within(row)}
        found.setdefault(key, said | own)
        found[key]["layers"].append(row["layer"])
        found[key]["indices"] += row["layers"]
    names = Counter(row["name"] for row in found.values())
    for row in found.values():
        row["kind"] = _kind(row, WORDS[language]) if names[row["name"]] > 1 else ""
    return list(found.values())


def _kind(row: dict, words: dict) -> str:
    """sliding_attention (layers 0–2): a kind of layer and where the record has it."""
    at = sorted(row["indices"])
    run = len(at) > 1 and at == list(range(at[0], at[-1] + 1))
    shown = f"{at[0]}–{at[-1]}" if run else ", ".join(map(str, at))
    where = words["layers" if len(at) > 1 else "layer"].format(shown)
    kinds = (re.sub(r" ?\(?layer \d+\)?$", "", kind) for kind in row["layers"])
    kind = "/".join(filter(None, dict.fromkeys(kinds)))
    return kind + words["brackets"].format(where) if kind else where


def _by_side(found) -> dict:
    return found if isinstance(found, dict) else {"": found}


def data(language: str, url=lambda page, anchor="": f"{page}#{anchor}") -> dict:
    """All that compare.js needs; ``url(page, anchor)`` leads there from the atlas."""
    drawings: dict[str, int] = {}
    forms: dict[tuple, int] = {}
    rows = feature_rows(language)
    for row in rows:
        name, within = row["name"], row.pop("within")
        part = atlas.part_of(name).replace("_", "-")
        row["href"] = url(f"practice/blocks-{part}.md", atlas.slug(name))
        row["parts"] = {
            place: [
                found["name"],
                forms.setdefault(found["form"], len(forms)),
                found.get("scope", ""),
                found.get("rope", ""),
            ]
            for place, found in row["parts"].items()
        }
        row["drawing"] = None
        if row["equations"]:
            try:
                svg = drawing.draw(row["equations"], "", within)
                row["drawing"] = drawings.setdefault(svg, len(drawings))
                shown = set(re.findall(r">([^<>]+)</text>", svg))
                row["boxes"] = {k: v for k, v in row["boxes"].items() if k in shown}
            except drawing.EquationError:
                pass  # the equations stand below in any case
    rooms, errors = compare_words.written()["bugs"], compare_words.errors()
    steps = compare_words.steps(language)
    for step in steps.values():
        if "bugs" in step:
            step["bugs"] = {
                side: [[bug, url("reference/bugs.md", rooms[bug])] for bug in bugs]
                for side, bugs in _by_side(step["bugs"]).items()
            }
        if "wrong" in step:
            step["wrong"] = {
                side: [name, *errors[name], url(PORT, "errors")]
                for side, name in _by_side(step["wrong"]).items()
            }
        if "more" in step:
            target, _, anchor = step["more"].rpartition("#")
            step["more"] = url(target or PORT, anchor)
        if "code" in step:
            file, _, section = step["code"].partition(":")
            lines = embedded(f"port_a_norm/{file}", section or None)
            step["code"] = ANNOTATION.sub("", lines).strip()
    return {
        "words": compare_words.words(language),
        "steps": steps,
        "fields": FORM,
        "main": [*atlas.MAIN, "attention-sum", "ffn-sum"],
        "forms": list(forms),
        "drawings": list(drawings),
        "rows": rows,
    }


def _json(found) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _beside(target: str, anchor: str = "") -> str:
    """From the atlas's page, for HTML in which a link to a page is resolved."""
    return f"{posixpath.relpath(target, posixpath.dirname(PAGE))}#{anchor}"


def ask(language: str, expression: str):
    """The value of an expression in which ``data`` is the atlas, in compare.js."""
    found = _json(data(language, _beside))
    code = f"{SCRIPT.read_text(encoding='utf-8')}\nconst data = {found};"
    return json.loads(running(code).eval(f"JSON.stringify({expression})"))


def add(files, config) -> None:
    """Publish what the comparison needs, as a script: pages opened as files load it."""
    page = files.get_file_from_path(PAGE)
    if not page:
        return

    def url(target: str, anchor: str = "") -> str:
        file = files.get_file_from_path(target)
        return f"{file.url_relative_to(page) if file else target}#{anchor}"

    found = _json(data(config.theme["language"], url))
    event = f'new CustomEvent("atlas-compare", {{ detail: {found} }})'
    files.append(File.generated(config, URI, content=f"dispatchEvent({event});\n"))


def _code(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))


def _name(row: str) -> str:
    name, _, layer = row.partition(":")
    small = f" <small>{breakable(layer)}</small>" if layer else ""
    return breakable(name) + small


def picker(language: str) -> str:
    """The element that asks for two rows; it wakes with its script."""
    words = compare_words.words(language)
    form = html.escape(_json(words["form"]))
    return (
        f'<div><model-compare data-words="{form}"><p>{words["no_script"]}</p>'
        "</model-compare></div>"
    )


def _checklist(steps: list[dict], words: dict) -> str:
    """The steps of a pair, folded, for a page without scripts."""
    lines = []
    for step in steps:
        notes = [
            f'<a href="{href}"><code>{bug}</code></a>' for bug, href in step["bugs"]
        ]
        notes = [words["bug"] + words["comma"].join(notes)] if notes else []
        if "wrong" in step:
            name, error, moved, _ = step["wrong"]
            values = {"name": name, "error": error, "moved": moved}
            notes.append(_code(words["wrong"].format(**values)))
        if "more" in step:
            notes.append(f'<a href="{step["more"]}">{words["more"]}</a>')
        small = f" <small>{' '.join(notes)}</small>" if notes else ""
        lines.append(f"<li>{_code(step['text'])}{small}</li>")
    return (
        f"<details><summary>{words['steps']}</summary><ol>{''.join(lines)}</ol>"
        f"<p>{words['not_compared']}</p></details>"
    )


def pairs(language: str) -> str:
    """The pairs that people ask for, with what differs, as a plain table."""
    words = compare_words.words(language)
    asked = _json([f"{a},{b}" for a, b in PAIRS])
    answers = ask(language, f"{asked}.map((pair) => atlasCompare.pair(data, pair))")
    lines = [
        '<div><table class="models pairs">',
        f"<caption>{words['pairs']}</caption>",
        f'<thead><tr><th scope="col">{words["pair"]}</th>'
        f'<th scope="col">{words["differences"]}</th></tr></thead>',
        "<tbody>",
    ]
    for (a, b), answer in zip(PAIRS, answers, strict=True):
        if "differences" not in answer:
            raise SourceError(f"pair {a},{b}: {answer['line']}")
        said = words["semicolon"].join(map(_code, answer["differences"]))
        lines.append(
            f'<tr><th scope="row"><a href="#compare={quote(a, SAFE)},{quote(b, SAFE)}">'
            f"{_name(a)} → {_name(b)}</a></th>"
            f"<td><span>{said}{words['stop']}</span>"
            f"{_checklist(answer['steps'], words)}</td></tr>"
        )
    return "\n".join([*lines, "</tbody>", "</table></div>"])
