"""Rows of docs/data in both languages: read, and refused if out of form."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scripts.site.reading import files
from scripts.site.reading.files import SourceError
from scripts.site.reading.source import LANGUAGES

ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def read(path: Path, problem_of) -> list[dict]:
    """The rows of a file, read again when it has changed.

    ``problem_of(row)`` says what is out of form in a row; that is a SourceError
    which names the file and the row's id.
    """
    return _read(path, path.stat().st_mtime_ns, problem_of)


@cache
def _read(path: Path, stamp: int, problem_of) -> list[dict]:
    found, where = files.read_yaml(path), files.where(path)
    if not isinstance(found, list) or not found:
        raise SourceError(f"{where}: is no list of rows")
    for row in found:
        if problem := problem_of(row):
            name = row.get("id", "?") if isinstance(row, dict) else "?"
            raise SourceError(f"{where}: {name}: {problem}")
    return found


def problem_of_fields(row, fields: set, optional: set) -> str | None:
    """What is wrong with a row's fields and its id, None if nothing is."""
    if not isinstance(row, dict):
        return "is no mapping"
    if missing := fields - set(row):
        return f"no {', '.join(sorted(missing))}"
    if unknown := set(row) - fields - optional:
        return f"unknown field {', '.join(sorted(unknown))}"
    if not ID.fullmatch(str(row["id"])):
        return "id is not lower-case words joined by hyphens"
    return None


def problem_of_text(field: str, text) -> str | None:
    """What is wrong with a text in both languages, None if nothing is."""
    if not isinstance(text, dict) or set(text) != set(LANGUAGES):
        return f"{field} is not one text a language"
    if not all(isinstance(words, str) and words.strip() for words in text.values()):
        return f"{field} is empty or no text"
    return None


def problem_of_addresses(field: str, places) -> str | None:
    """What is wrong with an optional list of addresses, None if nothing is."""
    if places is None:
        return None
    if not isinstance(places, list) or not places or len(set(places)) < len(places):
        return f"{field} is not a list of different addresses"
    if bad := [place for place in places if not str(place).startswith("https://")]:
        return f"{field}: {bad[0]} is no address"
    return None


def host(address: str) -> str:
    """The name under which an address is linked: its host, or repository and file."""
    parts = urlsplit(address)
    if parts.hostname == "github.com":
        owner, name, *rest = parts.path.strip("/").split("/")
        return ": ".join([f"{owner}/{name}", *map(unquote, rest[-1:])])
    return parts.hostname.removeprefix("www.")
