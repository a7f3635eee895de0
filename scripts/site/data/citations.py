"""Citations: references.bib in, `[[ cite.key ]]` and a list a page out."""

import html
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scripts.site.reading.source import ROOT, SourceError

BIBLIOGRAPHY = ROOT / "docs" / "data" / "references.bib"
CITED = re.compile(r"\[\[ *cite\.(?P<key>\w+) *\]\]")


@dataclass(frozen=True)
class Reference:
    """One entry of the bibliography, as pages need it."""

    key: str
    names: tuple[str, ...]
    title: str
    year: str
    url: str
    where: str
    note: str

    @property
    def authors(self) -> str:
        """Short form: 'Xiong et al.', 'Zhang & Sennrich'."""
        if len(self.names) > 2:
            return f"{self.names[0]} et al."
        return " & ".join(self.names)

    def __str__(self) -> str:
        """The citation in a sentence, linked to the page's list."""
        label = html.escape(f"{self.authors}, {self.year}")
        return f'<a class="cite" href="#ref-{self.key}">({label})</a>'

    @property
    def entry(self) -> str:
        """The entry in the list, as Markdown."""
        tail = [part for part in (self.where, self.note) if part]
        return (
            f'<span id="ref-{self.key}"></span>{", ".join(self.names)} ({self.year}). '
            f"{link(self.title, self.url)}."
            + "".join(f" {escaped(part)}." for part in tail)
        )


def escaped(text: str) -> str:
    """Plain text as Markdown that shows it."""
    return re.sub(r"([\\\[\]_*`])", r"\\\1", text)


def link(text: str, url: str) -> str:
    """A link in Markdown on plain text."""
    return f"[{escaped(text)}]({url})"


def _last_name(person) -> str:
    return _plain(" ".join(person.prelast_names + person.last_names))


@cache
def _read(path: Path, stamp: float) -> dict[str, Reference]:
    from pybtex.database import parse_file
    from pybtex.exceptions import PybtexError

    try:
        entries = parse_file(str(path), "bibtex").entries
    except PybtexError as error:
        reason = " ".join(str(error).split())
        raise SourceError(f"{BIBLIOGRAPHY.name}: {reason}") from None
    found = {}
    for key, entry in entries.items():
        fields = {
            name: value if name == "url" else _plain(value)  # a % begins no comment
            for name, value in entry.fields.items()
        }
        for name in ("title", "year", "url"):
            if name not in fields:
                raise SourceError(f"{BIBLIOGRAPHY.name}: {key} has no {name}")
        if not entry.persons.get("author"):
            raise SourceError(f"{BIBLIOGRAPHY.name}: {key} has no author")
        found[key] = Reference(
            key=key,
            names=tuple(map(_last_name, entry.persons["author"])),
            title=fields["title"],
            year=fields["year"],
            url=fields["url"],
            where=fields.get("journal") or fields.get("booktitle") or "",
            note=fields.get("note", ""),
        )
    return found


def _plain(text: str) -> str:
    """BibTeX's text without its TeX: accents as letters, no braces."""
    from pybtex.richtext import Text

    return str(Text.from_latex(text))


def references() -> dict[str, Reference]:
    """All entries by key, read again when the file has changed."""
    return _read(BIBLIOGRAPHY, BIBLIOGRAPHY.stat().st_mtime)


def append_list(markdown: str, config) -> str:
    """The page with a folded list of what it cites, in order of citation.

    A link to an entry opens it.
    """
    keys = list(dict.fromkeys(m["key"] for m in CITED.finditer(markdown)))
    known = references()
    entries = [f"    1. {known[key].entry}" for key in keys if key in known]
    if not entries:
        return markdown
    words = config.extra["words"]
    title, count = words["references"], words["sources"].format(len(entries))
    head = ["", f"## {title} {{ #references }}", "", f'??? quote "{count}"', ""]
    return "\n".join([markdown, *head, *entries, ""])
