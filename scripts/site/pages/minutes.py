"""How many minutes the pages of a door on the home page take to read.

Counted on the English pages, as they open: folded boxes and what the build appends
are left out; a mock interview takes the time it is set to. The count stands in both
languages.
"""

import math
import re

from scripts.site.pages.expand import expand
from scripts.site.reading.source import (
    EMBED,
    FENCE,
    ROOT,
    SourceError,
    embedded,
    without_front_matter,
)

WORDS_A_MINUTE = 220  # of prose
LINES_A_MINUTE = 15  # of code, four seconds each
ROUNDED_TO = 5
DOORS = ("evening", "hour", "night")  # of the home page
PAGES = ROOT / "docs" / "en" / "pages"
LABS = ROOT / "docs" / "labs"
MOCK = ROOT / "docs" / "theme" / "overrides" / "assets" / "mock.js"
SET_TO = re.compile(r'amount\("(?:number|minutes)", [\w.]+, (\d+)')
LINK = re.compile(r"\]\(([\w/-]+\.(?:md|ipynb))\)")
FOLDED = re.compile(r"^( *)\?\?\?(?!\+)")


def minutes(door: str) -> str:
    """Minutes for the pages that the door's line on the home page links to."""
    mark = f"[[ minutes.{door} ]]"
    home = (PAGES / "index.md").read_text(encoding="utf-8")
    lines = [line for line in home.splitlines() if mark in line]
    if len(lines) != 1:
        raise SourceError(f"index.md: {len(lines)} lines hold {mark}, not one")
    seconds = sum(_seconds(path) for path in LINK.findall(lines[0]))
    return str(max(1, math.ceil(seconds / 60 / ROUNDED_TO)) * ROUNDED_TO)


def _seconds(path: str) -> float:
    prose, code = _opened(path)
    read = 60 * (len(prose.split()) / WORDS_A_MINUTE + code / LINES_A_MINUTE)
    return read + (_mock() if path == "interview/mock.md" else 0)


def _mock() -> float:
    """Seconds of a mock interview as its form opens: questions times their minutes."""
    questions, each = SET_TO.findall(MOCK.read_text(encoding="utf-8"))
    return 60 * int(questions) * int(each)


def _opened(path: str) -> tuple[str, int]:
    """(prose, lines of code) of a page with its folded boxes left shut."""
    if path.endswith(".ipynb"):
        stem = path.removeprefix("labs/").removesuffix(".ipynb").replace("-", "_")
        return _lab((LABS / f"{stem}.py").read_text(encoding="utf-8"))
    return _page(expand((PAGES / path).read_text(encoding="utf-8"), "en"))


def _lab(source: str) -> tuple[str, int]:
    prose, code = [], 0
    for cell in source.split("# %%")[1:]:
        head, *lines = cell.splitlines()
        if "[markdown]" not in head:
            code += sum(bool(line) for line in lines)
        elif 'lang="zh"' not in head:
            prose += [line.removeprefix("#") for line in lines]
    return "\n".join(prose), code


def _page(source: str) -> tuple[str, int]:
    prose, code, in_fence, fold = [], 0, False, None
    for line in without_front_matter(source).splitlines():
        indent = len(line) - len(line.lstrip())
        if fold is not None and line.strip() and indent <= fold:
            fold = None
        if not in_fence and fold is None and (opened := FOLDED.match(line)):
            fold = len(opened[1])
        if FENCE.match(line):
            in_fence = not in_fence
        elif fold is None and in_fence:
            embed = EMBED.match(line.strip())
            code += len(embedded(*embed.groups()).splitlines()) if embed else 1
        elif fold is None:
            prose.append(line)
    return "\n".join(prose), code
