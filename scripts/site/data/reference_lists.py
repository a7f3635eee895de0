"""Pages written from data: `[[ lists.glossary ]]`, bibliography, rejected, contents.

Each list is Markdown, made in the page's language while the site builds.
"""

import re
import textwrap
from functools import cache
from pathlib import Path

from scripts.site.data import citations, known_wrong
from scripts.site.data.bilingual import problem_of_text
from scripts.site.data.terms import terms
from scripts.site.reading.files import (
    ROOT,
    SourceError,
    read_text,
    read_yaml,
    where,
)
from scripts.site.reading.source import LANGUAGES, front_matter

DATA = ROOT / "docs" / "data"
REJECTED = DATA / "rejected"
LISTS = ("bibliography", "contents", "glossary", "rejected")
NAMES = (*LISTS, "rejected_count")
WORDS = {
    "en": {
        "papers": "Papers",
        "sources": "Code, documentation and threads",
        "cited": "Cited on",
        "comma": ", ",
        "see": "See",
        "colon": ": ",
    },
    "zh": {
        "papers": "论文",
        "sources": "代码、文档与讨论",
        "cited": "引用处：",
        "comma": "、",
        "see": "见",
        "colon": "：",
    },
}


def pages(language: str) -> dict[str, str]:
    """Title of each Markdown page by its path below ``pages``."""
    return _pages(ROOT / "docs" / language / "pages")


@cache
def _pages(folder: Path) -> dict[str, str]:
    return {
        file.relative_to(folder).as_posix(): _title(file, file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*.md"))
    }


def read_again() -> None:
    """Forget the pages' titles: a build begins, and some may have changed."""
    _pages.cache_clear()


@cache
def _title(file: Path, stamp: int) -> str:
    text = read_text(file)
    try:
        return front_matter(text)["title"]
    except SourceError as error:
        raise SourceError(f"{where(file)}: {error}") from None


def subject(title: str) -> str:
    """A title without the name of its section: 'Claims: LayerNorm' is LayerNorm."""
    return re.split(r"[:：] ?", title, maxsplit=1)[-1]


def append_folded(markdown: str, title: str, links: list[str]) -> str:
    """A page with a folded list of links at its end, unless there are none."""
    if not links:
        return markdown
    head = f'??? question "{title} ({len(links)})"'
    items = [f"    - {link}" for link in links]
    return "\n".join([markdown.rstrip("\n"), "", head, "", *items, ""])


def bibliography(language: str) -> str:
    """All references, papers first, each with the pages that cite it."""
    words, folder = WORDS[language], ROOT / "docs" / language / "pages"
    citing: dict[str, list[str]] = {}
    for path, title in pages(language).items():
        text = read_text(folder / path)
        for key in dict.fromkeys(m["key"] for m in citations.CITED.finditer(text)):
            citing.setdefault(key, []).append(f"[{title}](../{path})")
    known = sorted(
        citations.references().values(),
        key=lambda r: (r.names[0].lower(), r.year, r.title),
    )
    parts = []
    for heading, is_paper in (("papers", True), ("sources", False)):
        parts.append(f"## {words[heading]} {{ #{heading} }}\n")
        for reference in known:
            if ("github.com" not in reference.url and not _is_docs(reference)) is (
                is_paper
            ):
                where = words["comma"].join(citing.get(reference.key, []))
                tail = f" {words['cited']} {where}" if where else ""
                parts.append(f"- {reference.entry}{tail.rstrip()}")
        parts.append("")
    return "\n".join(parts)


def _is_docs(reference) -> bool:
    return not (reference.where or "arxiv.org" in reference.url)


def definitions() -> dict[str, dict]:
    """{term: its text in both languages and its page}. SourceError, if damaged."""
    path = DATA / "glossary.yml"
    found = read_yaml(path)
    if not isinstance(found, dict):
        raise SourceError(f"{where(path)}: is no mapping of terms")
    for name, entry in found.items():
        if not isinstance(entry, dict) or set(entry) != {*LANGUAGES, "page"}:
            raise SourceError(f"{where(path)}: {name}: is not zh, en and page")
        texts = {language: entry[language] for language in LANGUAGES}
        if problem := problem_of_text("its text", texts):
            raise SourceError(f"{where(path)}: {name}: {problem}")
        if not isinstance(entry["page"], str):
            raise SourceError(f"{where(path)}: {name}: page {entry['page']!r} is none")
    return found


def glossary(language: str) -> str:
    """The terms that have a definition, in alphabetical order of the English."""
    words, titles = WORDS[language], pages(language)
    chinese = {term["en"]: term["zh"] for term in terms()}
    parts = []
    for name, entry in sorted(definitions().items(), key=lambda item: item[0].lower()):
        if name not in chinese:
            raise SourceError(f"glossary.yml: {name!r} is not in terms.yml")
        first, second = name, chinese[name]
        if language == "zh":
            first, second = second, first
        also = f" ({second})" if language == "en" else f"（{second}）"
        head = f"**{first}**" + (also if first.lower() != second.lower() else "")
        path, _, anchor = entry["page"].partition("#")
        if path not in titles:
            raise SourceError(f"glossary.yml: {name}: no page {path}")
        link = f"[{titles[path]}](../{path}{'#' + anchor if anchor else ''})"
        space = " " if language == "en" else ""
        parts.append(
            f'- <span id="{re.sub("[^a-z0-9]+", "-", name.lower())}"></span>'
            f"{head}{words['colon']}{entry[language]}{space}{words['see']} {link}"
            + ("." if language == "en" else "。")
        )
    return "\n".join(parts)


def rejected_data() -> dict[str, dict]:
    """{page's snippet folder: {suite: {variant: what is wrong in each language}}}.

    A suite is a file and name of the folder, such as reference.rms_norm, or else a
    test module; a variant may have a change, old => new, of the snippet's text.
    """
    return {path.stem: rejected_suites(path) for path in sorted(REJECTED.glob("*.yml"))}


def rejected_suites(path: Path) -> dict[str, dict]:
    """The suites of one page. SourceError, if the file is damaged."""
    found = read_yaml(path)
    if not isinstance(found, dict):
        raise SourceError(f"{where(path)}: is no mapping of suites")
    for suite, variants in found.items():
        if not isinstance(variants, dict):
            raise SourceError(f"{where(path)}: {suite}: is no mapping of variants")
        for name, texts in variants.items():
            words = texts
            if isinstance(texts, dict):
                words = {key: held for key, held in texts.items() if key != "change"}
            if problem := problem_of_text(f"{suite}: {name}", words):
                raise SourceError(f"{where(path)}: {problem}")
    return found


def changes(variants: dict[str, dict]) -> dict[str, str | list[str]]:
    """The changes of a suite's variants that are one, by name."""
    return {n: texts["change"] for n, texts in variants.items() if "change" in texts}


def place(page: str, suite: str) -> tuple[str, str]:
    """Snippet module and name of a suite: rms_norm, reference.rms_norm."""
    file, _, name = suite.rpartition(".")
    return f"{page}.{file}", name


def differences() -> frozenset[str]:
    """All changes of known-wrong variants as the page shows them."""
    return frozenset(
        "\n".join(known_wrong.difference(*place(page, suite), change))
        for page, suites in rejected_data().items()
        for suite, variants in suites.items()
        for change in changes(variants).values()
    )


def rejected_count() -> str:
    """How many known-wrong variants are described."""
    suites = [suite for page in rejected_data().values() for suite in page.values()]
    return str(sum(len(suite) for suite in suites))


def rejected(language: str) -> str:
    """What is wrong with each known-wrong variant: a folded block a page.

    The heading is within the fold, so that its anchor opens it.
    """
    words, data, parts = WORDS[language], rejected_data(), []
    for path, title in in_reading_order(language):
        slug = Path(path).stem
        suites = data.pop(slug.replace("-", "_"), {})  # the interview repeats a name
        if not suites:
            continue
        held = [f"## [{title}](../{path}) {{ #{slug} }}", ""]
        for suite, variants in suites.items():
            page = slug.replace("-", "_")
            file, _, name = suite.rpartition(".")
            what = f"`{page}/{file or name}.py`" + (f", `{name}`" if file else "")
            held += [f"{what} ({len(variants)})", ""]
            for variant, text in variants.items():
                held.append(f"- `{variant}`{words['colon']}{text[language]}")
                if "change" in text:
                    held += _shown(*place(page, suite), text["change"])
            held.append("")
        count = sum(map(len, suites.values()))
        parts += [f'??? note "{title} ({count})"', ""]
        parts += [textwrap.indent("\n".join(held), "    ")]
    return "\n".join(parts)


def _shown(module: str, name: str, change: str | list[str]) -> list[str]:
    """The changed lines as a block below an item of a list."""
    lines = ["```{ .diff .no-copy }", *known_wrong.difference(module, name, change)]
    return ["", *(f"    {line}" for line in (*lines, "```")), ""]


def in_reading_order(language: str) -> list[tuple[str, str]]:
    """(path, title) of the pages of the navigation."""
    text = read_text(ROOT / "docs" / language / "mkdocs.yml")
    order = re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE)
    titles = pages(language)
    return [(path, titles[path]) for path in order if path in titles]


def contents(language: str) -> str:
    """A map of the navigation for the home page: groups, their sections, a gloss each.

    A section leads to its first page. SourceError for one without a gloss.
    """
    nav = read_yaml(ROOT / "docs" / language / "mkdocs.yml")["nav"]
    file = DATA / "sections.yml"
    glosses = read_yaml(file)
    parts = ['<div class="map" markdown>', ""]
    for entry in nav:
        for group, held in entry.items():
            if isinstance(held, str):  # the home page itself
                continue
            parts += ["<div markdown>", "", f"**{group}**", ""]
            for name, path in (_first(section) for section in held):
                if path not in glosses:
                    raise SourceError(f"{where(file)}: no gloss for {path}")
                parts.append(f"- [{name}]({path})<br>{glosses[path][language]}")
            parts += ["", "</div>", ""]
    return "\n".join([*parts, "</div>"])


def _first(entry: dict) -> tuple[str, str]:
    """Name of an entry of the navigation, and the first page in it."""
    ((name, held),) = entry.items()
    while isinstance(held, list):
        (held,) = held[0].values()
    return name, held


def make(name: str, language: str) -> str:
    """One list by name. SourceError for an unknown one."""
    if name == "rejected_count":
        return rejected_count()
    if name not in NAMES:
        known = ", ".join(NAMES)
        raise SourceError(f"unknown list {name!r}; known: {known}")
    makers = {
        "bibliography": bibliography,
        "contents": contents,
        "glossary": glossary,
        "rejected": rejected,
    }
    return makers[name](language)
