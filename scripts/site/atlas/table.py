"""The table of all architectures: plain HTML that a script filters and sorts."""

import html
import json
from collections import Counter

from scripts.site.atlas import rows as atlas
from scripts.site.atlas.words import (
    ROUNDS,
    WORDS,
    decimal,
    gain_words,
    rounds_words,
)

# What rows are chosen by.
KEYS = ("norm", "gain", "placement", "qk", "eps", "cast", "family")
FILTERED = (
    *("pre", "post", "sandwich", "branch-output", "pre-parallel"),
    *("residual-after-norm", "multi-stream", "none", "other", "unresolved"),
    *("head", "projection"),
)


def qk_words(row: dict, words: dict) -> str:
    """What the table says of a row's QK-Norm."""
    found = atlas.qk_norms(row)
    if not found:
        return words["none"] if row["status"] != "unresolved" else ""
    _, kind, _, scope, rope = found[0]
    parts = []
    if {entry[0] for entry in row["qk"]} & {"q", "k", "qk", "kv"} == {"k"}:
        parts.append(words["k-only"])
    parts.append(words.get(scope, scope))
    parts.append(words["no-rope"] if rope == "none" else words.get(rope, rope))
    other = "" if kind == "RMSNorm" else words["brackets"].format(kind)
    return words["and"].join(parts) + other


def norm_words(row: dict, words: dict) -> str:
    """What the table says of a row's main norm."""
    norm = atlas.main_norm(row)
    if not norm:
        return words["none"] if row["status"] == "resolved" else "–"
    if norm["gain"] == "w":  # the form that nobody asks about
        return norm["kind"]
    return norm["kind"] + words["brackets"].format(gain_words(norm["gain"], words))


def placement_words(row: dict, words: dict) -> str:
    """What the table says of where a row's norms stand."""
    if row["status"] == "unresolved" or not row["placement"]:
        return words["unresolved"]
    return words.get(row["placement"], row["placement"])


def eps_words(row: dict, words: dict) -> str:
    """The epsilon of a row's main norm, as people write it."""
    eps = atlas.main_norm(row).get("eps")
    return "" if eps is None else decimal(eps)


def cast_order(row: dict) -> str:
    """Where a row's main norm rounds to its input's dtype, in the record's words."""
    return (atlas.main_norm(row).get("cast") or "").partition(" → ")[0]


def breakable(name: str) -> str:
    """A name in code that a narrow column may break behind an underscore."""
    return html.escape(name).replace("_", "_<wbr>")


def table(language: str) -> str:
    """All rows as one table, with what a script filters and sorts by."""
    words = WORDS[language]
    sizes = Counter(map(atlas.family, atlas.groups()))
    columns = ("architecture", "norm", "placement", "qk", "eps", "cast")
    head = "".join(f'<th scope="col">{words[column]}</th>' for column in columns)
    labels = {key: words[key] for key in FILTERED if key in words}
    labels |= {f"{key}:": words[key] for key in KEYS}
    labels |= {order: said[language] for order, said in ROUNDS.items()}
    labels = html.escape(json.dumps(labels, ensure_ascii=False))
    lines = [
        # Markdown keeps what stands in a div as it is; it does not know the element.
        f'<div><model-atlas data-labels="{labels}">',
        '<div class="atlas-box"><table class="atlas">',
        f"<caption>{words['caption']}</caption>",
        f"<thead><tr>{head}</tr></thead>",
        "<tbody>",
    ]
    for cells, alike in _groups(language).items():
        row, name = alike[0], cells[0]
        page = f"blocks-{atlas.part_of(name).replace('_', '-')}.md#{atlas.slug(name)}"
        layers = ", ".join(filter(None, dict.fromkeys(row["layer"] for row in alike)))
        small = f" <small>{breakable(layers)}</small>" if layers else ""
        own, norm, qk = atlas.family(name), atlas.main_norm(row), atlas.qk_norms(row)
        keys = {
            "family": own if sizes[own] > 1 else "",
            "norm": norm.get("kind", ""),
            "gain": norm.get("gain", ""),
            "placement": row["placement"] or "unresolved",
            "qk": qk[0][3] if qk else "none",
            "eps": eps_words(row, words),
            "cast": cast_order(row),
        }
        data = "".join(f' data-{k}="{html.escape(v)}"' for k, v in keys.items())
        lines.append(
            f'<tr{data}><th scope="row"><a href="{page}">{breakable(name)}</a>{small}'
            "</th>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells[1:])
            + "</tr>"
        )
    return "\n".join([*lines, "</tbody>", "</table></div>", "</model-atlas></div>"])


def _groups(language: str) -> dict[tuple, list[dict]]:
    """Rows by what the table says of them: layers that read alike share a line."""
    words = WORDS[language]
    found: dict[tuple, list[dict]] = {}
    for row in atlas.rows():
        cells = (norm_words, placement_words, qk_words, eps_words)
        said = (words_of(row, words) for words_of in cells)
        key = (row["architecture"], *said, rounds_words(cast_order(row), language))
        found.setdefault(key, []).append(row)
    return found
