"""Twins: a page exists in both languages, under the same path."""

from itertools import permutations

from scripts.site.reading.source import LANGUAGES, ROOT, SourceError


def check() -> None:
    """Raise SourceError for the first page that one language lacks."""
    found = {}
    for language in LANGUAGES:
        pages = ROOT / "docs" / language / "pages"
        found[language] = {p.relative_to(pages).as_posix() for p in pages.rglob("*.md")}
    for here, there in permutations(LANGUAGES):
        for uri in sorted(found[here] - found[there]):
            raise SourceError(
                f"docs/{here}/pages/{uri}: its twin docs/{there}/pages/{uri} is missing"
            )
