"""Reading pages: front matter, fences and the snippet sections they embed.

Everything that looks at a page's source (the laws, the block runner, the
notebooks, llms.txt) goes through this module, so that they all see the same
fences. Text in, text out; no MkDocs here.
"""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SNIPPETS = ROOT / "snippets"
LANGUAGES = ("zh", "en")

FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
EMBED = re.compile(r'^-{1,}8<-{1,} "(?P<file>[^":]+)(?::(?P<section>[^":]+))?"$')
MARKER = re.compile(r"-{1,}8<-{1,} \[(?P<kind>start|end): *(?P<name>[^\]]+)\]")
FRONT_MATTER = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)


class SourceError(ValueError):
    """A page or snippet that cannot be read as meant. One line."""


@dataclass(frozen=True)
class Fence:
    """One fenced block: ``line`` and ``end`` are the 1-based fence lines."""

    info: str
    body: str
    line: int
    end: int
    indent: int
    mark: str

    @property
    def embed(self) -> tuple[str, str | None] | None:
        """(file, section) when the body is exactly one embed, else None."""
        match = EMBED.match(self.body.strip())
        return (match["file"], match["section"]) if match else None


def fences(text: str) -> list[Fence]:
    """All fenced blocks of a page, in order, whatever their info string."""
    found, lines, i = [], text.splitlines(), 0
    while i < len(lines):
        opening = FENCE.match(lines[i])
        if not opening:
            i += 1
            continue
        mark, start = opening["mark"], i
        i += 1
        while i < len(lines) and not re.fullmatch(
            rf" *{re.escape(mark[0])}{{{len(mark)},}} *", lines[i]
        ):
            i += 1
        if i == len(lines):
            raise SourceError(f"line {start + 1}: fence is never closed")
        body = textwrap.dedent("\n".join(lines[start + 1 : i]))
        indent = len(opening["indent"])
        found.append(Fence(opening["info"], body, start + 1, i + 1, indent, mark))
        i += 1
    return found


def without_front_matter(text: str) -> str:
    """The page's text with its front matter blanked, line numbers kept."""
    return FRONT_MATTER.sub(lambda m: "\n" * m[0].count("\n"), text)


def sections(text: str) -> dict[str, str]:
    """Sections of a snippet by name, markers removed.

    Raises SourceError for markers that are nested, unbalanced or repeated.
    """
    found: dict[str, str] = {}
    name, body = None, []
    for number, line in enumerate(text.splitlines(), 1):
        marker = MARKER.search(line)
        if marker is None:
            body.append(line)
        elif marker["kind"] == "start":
            if name is not None:
                raise SourceError(f"line {number}: section opens inside {name!r}")
            if marker["name"] in found:
                raise SourceError(f"line {number}: section {marker['name']!r} twice")
            name, body = marker["name"], []
        else:
            if marker["name"] != name:
                raise SourceError(
                    f"line {number}: end of {marker['name']!r}, open is {name!r}"
                )
            found[name], name = textwrap.dedent("\n".join(body)).strip("\n"), None
    if name is not None:
        raise SourceError(f"section {name!r} is never closed")
    return found


def check(text: str, root: Path = SNIPPETS) -> None:
    """Raise SourceError for the first fence that readers see but nobody runs."""
    for fence in fences(text):
        if fence.mark != "```" or fence.info not in ("python", "text"):
            opening = fence.mark + fence.info
            raise SourceError(
                f"line {fence.line}: fence {opening!r} would be skipped by the tests; "
                "only ```python and ```text are run"
            )
        if fence.embed is None:
            raise SourceError(f"line {fence.line}: a fence holds exactly one embed")
        try:
            embedded(*fence.embed, root)
        except SourceError as error:
            raise SourceError(f"line {fence.line}: {error}") from None


def embedded(file: str, section: str | None = None, root: Path = SNIPPETS) -> str:
    """The text that ``--8<-- "file:section"`` puts on a page."""
    path = root / file
    if not path.is_file():
        raise SourceError(f"no snippet {file}")
    text = path.read_text(encoding="utf-8")
    if section is None:
        lines = [line for line in text.splitlines() if not MARKER.search(line)]
        return "\n".join(lines).strip("\n")
    try:
        return sections(text)[section]
    except SourceError as error:
        raise SourceError(f"{file}: {error}") from None
    except KeyError:
        raise SourceError(f"no section {section!r} in {file}") from None


def first_line(file: str, section: str | None = None, root: Path = SNIPPETS) -> int:
    """The 1-based line of the snippet file at which its embedded text begins."""
    lines = (root / file).read_text(encoding="utf-8").splitlines()
    start = 0
    if section is not None:
        names = [MARKER.search(line) for line in lines]
        start = next(i for i, m in enumerate(names, 1) if m and m["name"] == section)
    return next(i for i, line in enumerate(lines[start:], start + 1) if line.strip())


@dataclass(frozen=True)
class Heading:
    """One ``## Title { #id }`` line; ``id`` is None where none is written."""

    level: int
    title: str
    id: str | None
    line: int


HEADING = re.compile(r"^(#{1,6}) +(.+?)(?: +\{ #([^ }]+) \})? *$")


def without_fences(text: str) -> str:
    """The page's text with front matter and fences blanked, line numbers kept."""
    lines = without_front_matter(text).splitlines()
    for fence in fences(text):
        lines[fence.line - 1 : fence.end] = [""] * (fence.end - fence.line + 1)
    return "\n".join(lines)


def headings(text: str) -> list[Heading]:
    """All headings outside fences, in order."""
    lines = enumerate(without_fences(text).splitlines(), 1)
    matches = ((number, HEADING.match(line)) for number, line in lines)
    return [Heading(len(m[1]), m[2], m[3], number) for number, m in matches if m]
