"""Figures without what nobody sees: the same picture with a third of the bytes.

matplotlib repeats fonts, styles, ids and six decimals on every mark. What is seen
stays: text takes the page's font, coordinates a tenth, styles a class, and of the ids
those that something refers to, in short.
"""

import html
import re
import zlib

DROPPED = [
    re.compile(r"<metadata>.*?</metadata>", re.DOTALL),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"<style[^>]*>.*?</style>", re.DOTALL),
    re.compile(r"font-family: [^;\"]*;? ?"),
    re.compile(r' transform="rotate\(-?0 [^)]*\)"'),
]
TAG = re.compile(r"<[^>]+>")  # what is written between two tags stays as it is
DECIMALS = re.compile(r"-?\d+\.\d+")
PATH = re.compile(r' d="([^"]*)"')
BETWEEN = re.compile(r"\s*([A-Za-z])\s*")  # blanks around the commands of a path
ID = re.compile(r' id="([^"]+)"')
REFERENCE = re.compile(r'(?:href="#|url\(#)([^")]+)')
FALLBACK = re.compile(r"var\((--[\w-]+), #[0-9a-f]{6}\)")
CLIPPED = re.compile(r' clip-path="(url\([^)]*\))" style="([^"]*)"')
STYLE = re.compile(r' style="([^"]*)"')
GROUP = re.compile(r"<g( [^>]*)?>|</g>")
OFTEN = 3  # so many times a style must stand there to become a class


def _number(match: re.Match) -> str:
    value = float(match[0])
    text = f"{value:.{2 if abs(value) < 10 else 1}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _path(match: re.Match) -> str:
    commands = BETWEEN.sub(r"\1", match[1]).strip()
    return f' d="{commands}"'


def _rounded(tag: re.Match) -> str:
    return PATH.sub(_path, DECIMALS.sub(_number, tag[0]))


def slim(svg: str) -> str:
    """The picture without what a page does not need."""
    svg = svg[svg.index("<svg") :]
    for pattern in DROPPED:
        svg = pattern.sub("", svg)
    own = f"f{zlib.crc32(svg.encode()):x}"[:4]  # several pictures share a page
    svg = TAG.sub(_rounded, _short_ids(svg, own))
    svg = re.sub(r">\s+<", "><", re.sub(r"\s+", " ", svg)).strip()
    svg = CLIPPED.sub(r' style="clip-path:\1;\2"', _without_idle_groups(svg))
    return _classes(svg, own)


def inline(svg: str) -> str:
    """The picture in a page, whose scheme gives each colour: no hex as a fallback."""
    return FALLBACK.sub(r"var(\1)", svg.strip())


def _short_ids(svg: str, own: str) -> str:
    """Ids that are referred to, as own-0, own-1, ...; the others go."""
    used = {
        old: f"{own}-{n}" for n, old in enumerate(dict.fromkeys(REFERENCE.findall(svg)))
    }
    svg = ID.sub(lambda m: f' id="{used[m[1]]}"' if m[1] in used else "", svg)
    return REFERENCE.sub(lambda m: m[0].replace(m[1], used[m[1]]), svg)


def _without_idle_groups(svg: str) -> str:
    """Groups without an attribute hold nothing together."""
    open_groups: list[bool] = []

    def kept(match: re.Match) -> str:
        if match[0] != "</g>":
            open_groups.append(bool(match[1]))
        stays = open_groups[-1] if match[0] != "</g>" else open_groups.pop()
        return match[0] if stays else ""

    return GROUP.sub(kept, svg)


def _classes(svg: str, own: str) -> str:
    """Styles that stand there often, once each, as classes of this picture."""
    every = STYLE.findall(svg)
    often = [style for style in dict.fromkeys(every) if every.count(style) >= OFTEN]
    names = {style: f"{own}{n}" for n, style in enumerate(often)}
    svg = STYLE.sub(lambda m: f' class="{names[m[1]]}"' if m[1] in names else m[0], svg)
    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    start = svg.index(">") + 1
    return f"{svg[:start]}<style>{rules}</style>{svg[start:]}" if rules else svg


def named(svg: str, label: str) -> str:
    """The picture with a name for screen readers."""
    return svg.replace("<svg", f'<svg aria-label="{html.escape(label)}"', 1)
