"""The words of the site, docs/data/terms.yml: the Chinese for each English term."""

from scripts.site.reading.files import ROOT, SourceError, read_yaml, where

FILE = ROOT / "docs" / "data" / "terms.yml"


def problem_of(term) -> str | None:
    """What is out of form in a term, None if nothing is."""
    if not isinstance(term, dict) or not {"en", "zh", "avoid"} <= set(term):
        return "is not en, zh and avoid"
    if not isinstance(term["en"], str) or not isinstance(term["zh"], str):
        return "en or zh is no text"
    if not isinstance(term["avoid"], list):
        return "avoid is no list"
    return None


def terms() -> list[dict]:
    """All terms. SourceError, one line, if damaged."""
    found = read_yaml(FILE)
    if not isinstance(found, list) or not found:
        raise SourceError(f"{where(FILE)}: is no list of terms")
    for number, term in enumerate(found, 1):
        if problem := problem_of(term):
            name = term.get("en", number) if isinstance(term, dict) else number
            raise SourceError(f"{where(FILE)}: term {name}: {problem}")
    return found
