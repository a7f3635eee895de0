"""Figures inside a page: the same picture with a third of the bytes.

matplotlib repeats fonts, ids and six decimals on every mark. A page keeps what is
seen: text takes the page's font, coordinates two decimals, and only the ids that
something refers to stay.
"""

import html
import re

DROPPED = [
    re.compile(r"<metadata>.*?</metadata>", re.DOTALL),
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"<style[^>]*>.*?</style>", re.DOTALL),
    re.compile(r"font-family: [^;\"]*;? ?"),
    re.compile(r' transform="rotate\(-?0 [^)]*\)"'),
]
TAG = re.compile(r"<[^>]+>")  # what is written between two tags stays as it is
DECIMALS = re.compile(r"-?\d+\.\d{3,}")
ID = re.compile(r' id="([^"]+)"')
REFERENCE = re.compile(r'(?:href="#|url\(#)([^")]+)')
FALLBACK = re.compile(r"var\((--[\w-]+), #[0-9a-f]{6}\)")


def _rounded(tag: re.Match) -> str:
    return DECIMALS.sub(lambda match: f"{float(match[0]):.2f}", tag[0])


def slim(svg: str) -> str:
    """The picture without what a page does not need."""
    svg = svg[svg.index("<svg") :]
    for pattern in DROPPED:
        svg = pattern.sub("", svg)
    used = set(REFERENCE.findall(svg))
    svg = ID.sub(lambda match: match[0] if match[1] in used else "", svg)
    svg = TAG.sub(_rounded, svg)
    svg = FALLBACK.sub(r"var(\1)", svg)
    return re.sub(r">\s+<", "><", re.sub(r"\s+", " ", svg)).strip()


def named(svg: str, label: str) -> str:
    """The picture with a name for screen readers."""
    return svg.replace("<svg", f'<svg aria-label="{html.escape(label)}"', 1)
