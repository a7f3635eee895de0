"""A page as a list of parts (text, code, output), with nothing left to resolve.

Notebooks and llms.txt are made from these parts: embeds are expanded, facts and
citations filled in, boxes flattened, links made absolute.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import urlsplit

from scripts.site import atlas
from scripts.site.data import designs, facts, reference_lists
from scripts.site.data.facts import NAME
from scripts.site.pages import macros
from scripts.site.pages.expand import expand
from scripts.site.pictures import diagram, explore, gradient_bet, playground
from scripts.site.questions import interview_pages, mock
from scripts.site.reading.files import read_text
from scripts.site.reading.source import (
    EMBED,
    FENCE,
    ROOT,
    embedded,
    fences,
    without_front_matter,
)

BOX = re.compile(r'^(?P<indent> *)(?:!!!|\?\?\?\+?) \w+(?: "(?P<title>.*)")? *$')
HEADING_ID = re.compile(r"^(#+ .*?) *\{ *#[\w-]+ *\} *$", re.MULTILINE)
# Of a section that moved, or a question of a list that can be cut.
LINK_ID = re.compile(r"(?<=\))\{ *[#.][\w-]+ *\}")
CONTROL = re.compile(r'<(p|div) class="(?:only|filter)".*?</\1>')
LINK = re.compile(
    r"\]\((?P<target>[^)\s:]+\.(?:md|ipynb|json|py))"
    r"(?P<rest>(?:\?[\w=]+)?(?:#[\w-]+)?)\)"
)
OPEN, CLOSE = "<details>", "</details>"
LABEL = r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]"  # code in it may hold brackets
TAG = re.compile(
    r"</?(?:div|span|form|fieldset|legend|label|input"
    r"|quiz-score|quiz-paper|sheet-buttons|course-progress|course-done)"
    r"\b[^>]*>"
)


@dataclass(frozen=True)
class Part:
    """``kind`` is text, code or output; ``file`` the snippet file it shows."""

    kind: str
    text: str
    file: str | None = None


def parts(path: Path, language: str, site_url: str, folded: bool = False) -> list[Part]:
    """The parts of one page. ``site_url`` is the language's, ending in a slash.

    ``folded`` keeps folded boxes, each in one text with the code that it holds.
    """
    macros.check_names(read_text(path))
    pages = ROOT / "docs" / language / "pages"
    text = without_front_matter(read_text(path)).strip("\n")
    text = _flatten_boxes(expand(text, language), folded)
    found, lines, at = [], text.splitlines(), 0
    uri = path.relative_to(pages).as_posix()

    def prose(start, end):
        body = "\n".join(lines[start:end]).strip("\n")
        if body:
            resolved = _resolve(body, language)
            found.append(Part("text", absolute_links(resolved, uri, site_url)))

    for fence in fences(text):
        prose(at, fence.line - 1)
        file, section = fence.embed or (None, None)
        body = embedded(file, section) if file else fence.body
        kind = "code" if fence.info == "python" else "output"
        found.append(Part(kind, body, file))
        at = fence.end
    prose(at, len(lines))
    return _joined(found) if folded else found


@cache
def once(path: Path, language: str, site_url: str) -> tuple[Part, ...]:
    """The parts of a page, read once a build: for its notebook and for llms.txt."""
    return tuple(parts(path, language, site_url))


def read_again() -> None:
    """Forget the pages as they were; each build starts with this."""
    once.cache_clear()


def _joined(page: list[Part]) -> list[Part]:
    """The parts, with each folded box as one text that holds the box's code."""
    found, lines, depth = [], [], 0

    def flush():
        if body := "\n".join(lines).strip("\n"):
            found.append(Part("text", body))
        lines.clear()

    for part in page:
        if part.kind != "text" and not depth:
            flush()
            found.append(part)
        elif part.kind != "text":
            kind = "python" if part.kind == "code" else "text"
            lines.extend(["", f"```{kind}", part.text, "```", ""])
        else:
            for line in part.text.splitlines():
                if line.startswith(OPEN):
                    depth or flush()
                    depth += 1
                lines.append(line)
                if line == CLOSE:
                    depth -= 1
                    depth or flush()
    flush()
    return found


def _flatten_boxes(text: str, folded: bool = False) -> str:
    """Boxes as a bold title and their content, at the level of the page's text.

    ``folded`` keeps those that one opens as HTML, which notebooks show.
    """
    out, depth, in_fence = [], [], None
    folds = []  # the depths of those that are kept

    def leave(depth_of_line):
        while depth and depth_of_line < depth[-1]:
            if depth.pop() in folds[-1:]:
                folds.pop()
                while not out[-1]:
                    out.pop()
                out.extend(["", CLOSE, ""])

    for line in text.splitlines():
        if line.strip():
            leave(len(line) - len(line.lstrip()))
        removed = depth[-1] if depth else 0
        shown = line[removed:] if line.strip() else ""
        fence = FENCE.match(shown)
        if fence and in_fence is None:
            in_fence = fence["mark"][0]
        elif fence and fence["mark"][0] == in_fence and not fence["info"].strip():
            in_fence = None
        box = None if in_fence else BOX.match(shown)
        if box:
            depth.append(removed + len(box["indent"]) + 4)
            title = box["title"] or ""
            if folded and shown.lstrip().startswith("???"):
                folds.append(depth[-1])
                out += [f"{OPEN}<summary>{title}</summary>", ""]
            else:
                out += [f"**{title}**" if title else "", ""]
        else:
            out.append(shown)
    leave(0)
    return "\n".join(out)


def _resolve(text: str, language: str) -> str:
    def fill(match):
        kind, _, rest = match["name"].partition(".")
        if kind == "figures":
            return _figure_text(rest, language)
        if kind == "designs":
            return facts.design(rest, language, designs.plain)
        if kind == "diagrams":
            words = diagram.load(rest).WORDS[language]
            return f"*{words['caption']}* {words['alt']}"
        if kind == "bets":
            return gradient_bet.text(rest, language)
        if kind == "playground":
            return playground.text(language)
        if kind == "explore":
            return explore.text(rest, language)
        if kind == "mock":
            return mock.text(rest, language)
        if kind == "atlas":
            return atlas.make_plain(rest, language)
        return facts.text(match["name"])

    text = TAG.sub("", CONTROL.sub("", NAME.sub(fill, text)))
    return LINK_ID.sub("", HEADING_ID.sub(r"\1", text))


def _figure_text(experiment: str, language: str) -> str:
    shown = []
    for record in facts.recorded()[experiment]:
        words = facts.words(record, language)
        shown.append(f"*{words['caption']}* ({record.machine}) {words['alt']}")
    return "\n\n".join(shown)


def absolute_links(text: str, uri: str, site_url: str) -> str:
    def absolute(match):
        target = normpath(join(dirname(uri), match["target"]))
        if target.endswith((".json", ".py")):  # a file to download
            return f"]({site_url}{target})"
        stem = target.rsplit(".", 1)[0]
        stem = "" if stem == "index" else stem.removesuffix("/index") + "/"
        return f"]({site_url}{stem}{match['rest']})"

    return LINK.sub(absolute, text)


def published(site_url: str) -> bool:
    """Whether this is an address for others: of a host with a name and a domain."""
    name = urlsplit(site_url).hostname or ""
    return "." in name and not name.replace(".", "").isdigit()


def lasting(text: str, site_url: str) -> str:
    """Absolute links where the site is published; elsewhere the pages' names."""
    if published(site_url):
        return text
    return re.sub(rf"{LABEL}\({re.escape(site_url)}[^)]*\)", r"\1", text)


def whereabouts(uri: str, language: str, site_url: str) -> str:
    """A page's address where the site is published; elsewhere its title."""
    if published(site_url):
        return f"<{site_url}{uri.removesuffix('.md')}/>"
    title = reference_lists.pages(language)[uri]
    return interview_pages.WORDS[language]["quoted"].format(title)


def has_code(text: str) -> bool:
    """Whether a page's source embeds Python."""
    return any(f.info == "python" and EMBED.match(f.body) for f in fences(text))
