"""The report as plain text."""

import re
import unicodedata

from scripts.examine.words import WORDS, said
from scripts.experiments.atlas import streams
from scripts.site.atlas.entries import details
from scripts.site.atlas.words import WORDS as ATLAS
from scripts.site.atlas.words import cast_words, decimal, gain_words, reason_words

WIDTH = 80
MANY = 6  # places of one kind that are listed


def spans(numbers: list[int], comma: str = ", ") -> str:
    """0, 2, 3, 4 -> 0, 2–4."""
    return streams.spans(numbers).replace(",", comma).replace("…", "–")


def heading(report: dict, language: str) -> list[str]:
    """What was examined: size, input, lists of layers."""
    words = WORDS[language]
    inputs = words["comma"].join(
        f"`{name}` {'×'.join(map(str, shape))} {words['tokens' if tokens else 'reals']}"
        for name, shape, tokens in report["input"]
    )
    lines = [words["size"].format(f"{report['parameters']:,}", inputs)]
    lines += [words["list"].format(*entry) for entry in report["lists"]]
    return lines


def row_lines(row: dict, language: str) -> list[str]:
    """What the atlas says of a row, without links; why, where nothing was resolved."""
    words = ATLAS[language]
    unread = not row["placement"]
    known = {"functional": [], **({"placement": "none"} if unread else {})}
    lines = details(row | known, language, ("no_final",))  # a rule says that
    if row["batch_norms"] and row["placement"] in ("none", "other"):
        names = words["comma"].join(f"`{name}`" for name in row["batch_norms"])
        lines[0] = WORDS[language]["batch-norms"].format(names)
    elif row["placement"] == "other":
        where = row["differ"] and reason_words(row["differ"], language)
        where = where or words["other"]
        lines[0] = words["placement"] + words["colon"] + where + words["stop"]
    if unread and row["status"] != "unresolved":
        lines[0] = words["placement"] + words["colon"] + WORDS[language]["unread"]
        lines[0] += words["stop"]
    if row["status"] == "partial":
        reasons = (reason_words(why, language) for why in row["reason"].split("; "))
        said = words["partial"] + words["colon"] + words["semicolon"].join(reasons)
        lines[1] = said + words["stop"]
    if row["status"] == "unresolved":
        said = words["unresolved"] + words["colon"]
        lines[0] = said + reason_words(row["reason"], language) + words["stop"]
    kinds = (norm[3].partition(" [") for norm in row["norms"])
    for axes in dict.fromkeys(f"[{axes}" for _, bracket, axes in kinds if bracket):
        lines.append(WORDS[language]["axes"].format(axes))
    return lines


def layers_of(row: dict, language: str) -> str:
    """Which layers, of which list."""
    return _numbered(row["layers"], language, "of").format(row["list"])


def _numbered(layers: list[int], language: str, key: str) -> str:
    words = WORDS[language]
    said = words[key if len(layers) > 1 else f"{key}-one"]
    return said.replace("{n}", spans(layers, words["comma"]))


def entry_line(entry: list, language: str) -> str:
    """What a rule says, and where."""
    what, places = said(entry, language)
    shown = WORDS[language]["comma"].join(f"`{p}`" for p in places[:MANY])
    more = f" … ({len(places)})" if len(places) > MANY else ""
    colon = "：" if language == "zh" else ": "
    return f"{shown}{more}{colon}{what}"


def against_lines(report: dict, language: str) -> list[str]:
    """What the comparison says, a line each."""
    found, words = report["against"], WORDS[language]
    same: dict = {}  # sites where the same differs
    for field, site, *rest in found["differences"]:
        same.setdefault(repr((field, rest)), ([field], [], rest))[1].append(site)
    lines = [
        difference_line([*field, sites, *rest], language)
        for field, sites, rest in same.values()
    ]
    if not lines:
        lines.append(words["same"])
    for key, *values in found["stored"]:
        if values and isinstance(values[0], list):
            places = words["comma"].join(f"`{p}`" for p in values[0][:MANY])
            more = f" … ({len(values[0])})" if len(values[0]) > MANY else ""
            values[0] = places + more
        lines.append(words[key].format(*values))
    for key, *values in found["shared"]:
        if key == "not-shared":
            ((why, what),) = values
            values = [words[why].format(what)]
        lines.append(words[key].format(*values))
    return lines


def difference_line(entry: list, language: str) -> str:
    """One difference: what, the places, ours, theirs, the layers."""
    words, atlas = WORDS[language], ATLAS[language]
    field, sites, *values, layers = entry

    def word(value) -> str:
        if not value and field in ("placement", "equations", "cast"):
            return words["unread"]
        if value is None:
            return words["none"]
        if isinstance(value, list):
            place, e = value
            return words["none"] if place == "none" else words[place].format(decimal(e))
        if field == "placement" and ": " in value:
            return reason_words(value, language)
        if isinstance(value, bool):
            return words["yes" if value else "no"]
        if isinstance(value, float):
            return decimal(value)
        if field == "cast":
            return cast_words(value, language)
        if field == "equations":
            return f"`{value}`"
        if field == "gain":
            return gain_words(value, atlas)
        known = atlas.get(value) if isinstance(value, str) else None
        return known if isinstance(known, str) else str(value)

    what = words["fields"][field]
    if where := [words["sites"].get(s, f"`{s}`") for s in sites if s]:
        what += atlas["brackets"].format(words["comma"].join(where))
    line = words["differs"].format(what, *map(word, values))
    if layers:
        line += atlas["brackets"].format(_numbered(layers, language, "in"))
    return line


def no_faults(report: dict, language: str) -> str:
    """That nothing is wrong, no further than the layers were read."""
    unread = any(row["placement"] is None for row in report["rows"])
    return WORDS[language]["no-faults-read" if unread else "no-faults"]


def text(report: dict, language: str) -> str:
    """The whole report, with a line break at its end."""
    words = WORDS[language]
    parts = [words["title"].format(report["name"]), *heading(report, language)]
    for row in report["rows"]:
        parts += ["", layers_of(row, language)]
        parts += [f"  {line}" for line in row["equations"]]
        parts += [f"- {line}" for line in row_lines(row, language)]
    if report["reads"]:
        parts += ["", words[report["reads"]]]
    parts.append("")
    if report["faults"]:
        count = ATLAS[language]["brackets"].format(len(report["faults"]))
        parts.append(words["faults"] + count)
        parts += [f"! {entry_line(entry, language)}" for entry in report["faults"]]
    else:
        parts.append(no_faults(report, language))
    if report["remarks"]:
        parts += ["", words["remarks"]]
        parts += [f"- {entry_line(entry, language)}" for entry in report["remarks"]]
    if report["against"]:
        parts += ["", words["against"].format(report["against"]["name"])]
        parts += [f"- {line}" for line in against_lines(report, language)]
    lines = [line.replace("`", "") for line in parts]
    lines = [part for line in lines for part in _wrapped(line)]
    return "\n".join(lines) + "\n"


PIECE = re.compile(
    r"\s+|[^\s\u2e80-\uffef]+[，。、：；）？]*|[\u2e80-\uffef][，。、：；）？]*"
)


def _wrapped(line: str) -> list[str]:
    """A line broken at spaces and between Chinese characters."""
    indent = "  " if line[:2] in ("- ", "! ") else "    "
    found, now = [], ""
    for piece in PIECE.findall(line):
        if now.strip() and _columns(now + piece.rstrip()) > WIDTH:
            found.append(now.rstrip())
            now, piece = indent, piece.lstrip()
        now += piece
    return [*found, now.rstrip()]


def _columns(text: str) -> int:
    """Columns of a terminal: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
