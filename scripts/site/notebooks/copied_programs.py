"""What copying hands over: each block of a page as a program that runs by itself, and
the whole page as one. A script beside the page holds them; the theme loads it when a
reader reaches for a button.

The blocks of most pages are the cells of the page's notebook. Those of the ledger and
of the quiz are checks, each with all that its file defines for it; here each is called.
"""

import json
import re
from functools import cache
from pathlib import Path

from mkdocs.structure.files import File

from scripts.site.data import claims
from scripts.site.notebooks import lab_source, page_notebooks, self_contained
from scripts.site.notebooks.self_contained import Parts
from scripts.site.pages.page_parts import has_code
from scripts.site.questions import interview, interview_pages
from scripts.site.reading.files import read_text
from scripts.site.reading.source import complete

SUFFIX = ".programs.js"
OF_REPOSITORY = re.compile(r"\bscripts(?:\.\w|/build\.py)")


def add(file, files, config) -> None:
    """Publish the programs of a page or lab beside it, if copying adds anything."""
    language, site_url = config.theme["language"], config.site_url or "/"
    words = json.dumps(config.extra["words"])
    stamps = page_notebooks.stamps(Path(file.abs_src_path))
    if text := _script(file.src_uri, language, site_url, words, stamps):
        files.append(File.generated(config, uri_of(file), content=text))


def link(page, files) -> None:
    """Tell the theme where the programs of a page are."""
    if found := files.get_file_from_path(uri_of(page.file)):
        page.meta["programs"] = found.url


def uri_of(file) -> str:
    """rms-norm.md -> rms-norm.programs.js; a lab's lie in its folder."""
    stem, _, kind = file.src_uri.rpartition(".")
    return f"{stem}/{Path(stem).name}{SUFFIX}" if kind == "ipynb" else stem + SUFFIX


@cache  # a live reload asks again for every page
def _script(uri, language, site_url, words, stamps) -> str | None:
    made = of(uri, language, site_url, json.loads(words))
    return made and self_contained.script(*made)


def of(
    uri: str, language: str, site_url: str, words: dict
) -> tuple[list[str], list[Parts], Parts | None] | None:
    """Cells, the parts of each block's program, and those of the page's.

    None for a page without code, and where a block stands alone and runs alone.
    """
    if checks := checks_of(uri):
        cells, blocks = _of_checks(checks, words)
        return cells, blocks, None
    if not (book := book_of(uri, language, site_url, words)):
        return None
    cells = [c["source"] for c in book["cells"] if c["cell_type"] == "code"]
    note = page_notebooks.note(words, "")
    own = [n for n, source in enumerate(cells) if not source.startswith(note)]
    if len(cells) == 1:
        return None
    every = self_contained.copies(cells)
    blocks = [_told(every[n], cells, words) for n in own]
    return cells, blocks, _told(self_contained.whole(cells), cells, words)


def book_of(uri: str, language: str, site_url: str, words: dict) -> dict | None:
    """The notebook whose cells a page's blocks are."""
    if uri.endswith(".ipynb"):
        lab = next(s for s in lab_source.sources() if lab_source.uri(s) == uri)
        return page_notebooks.lab(lab_source.executed_path(lab, language), words)
    path = page_notebooks.path_of(uri, language)
    if not has_code(read_text(path)):
        return None
    return page_notebooks.notebook(path, language, site_url, words)


def checks_of(uri: str) -> list[str]:
    """The checks that a page of the ledger or of the quiz shows, each with its call."""
    folder, _, name = uri.removesuffix(".md").partition("/")
    if folder == "claims" and name in claims.topics():
        rows = [row for row in claims.rows(name) if row.get("check")]
        return [
            f"{claims.check_source(name, row)}\n\n\n"
            f"for case, holds in {claims.check_name(row)}().items():\n"
            '    print(case, "->", "holds" if holds else "does not hold")'
            for row in rows
        ]
    if folder == "interview" and name in interview_pages.QUIZ_PAGES:
        groups = interview_pages.QUIZ_PAGES[name]
        rows = [(g, r) for g in groups for r in interview.quiz(g) if r.get("check")]
        keys = [(interview_pages.keys(g), r["id"].replace("-", "_")) for g, r in rows]
        return [f"{complete(*key)}\n\n\nprint({key[1]}())" for key in keys]
    return []


def _of_checks(checks: list[str], words: dict) -> tuple[list[str], list[Parts]]:
    """Each check on its own, with cells that several need held once."""
    cells: dict[str, int] = {}
    blocks = []
    for check in checks:
        book = page_notebooks.with_snippets([check], words)
        code = [cell["source"] for cell in book]
        parts = _told(self_contained.copies(code)[-1], code, words)
        blocks.append(
            [
                p if isinstance(p, str) else cells.setdefault(code[p], len(cells))
                for p in parts
            ]
        )
    return [*cells], blocks


def _told(parts: Parts, cells: list[str], words: dict) -> Parts:
    """The parts, below a line that says so where they need the repository."""
    if OF_REPOSITORY.search(self_contained.program(cells, parts)):
        return [f"# {words['repository']}", *parts]
    return parts
