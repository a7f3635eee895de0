"""Generated files are what `render` wrote: docs/generated.json has two digests of each.

Figures, diagrams, facts, executed labs and .out files are committed. The first digest
is of what a file was made from: another one now, and it is stale. The second is of the
text: an edit by hand, of a curve or of a number, shows here.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from scripts.measure.records import YOURS, write_whole
from scripts.site.reading.source import ROOT, SNIPPETS, SourceError

LIST = ROOT / "docs" / "generated.json"
OWN = ROOT / ".cache" / "generated.json"  # of the reader's own records, not committed
FOLDERS = (ROOT / "docs" / "figures", ROOT / "docs" / "facts")


def files() -> list[Path]:
    """All generated files that are committed; the reader's own are not."""
    found = [path for folder in FOLDERS for path in folder.rglob("*")]
    found += SNIPPETS.glob("*/*.out")
    return sorted(path for path in found if path.is_file() and _committed(path))


def _committed(path: Path) -> bool:
    return path.parent.name != YOURS and not path.name.startswith(".")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def digest(path: Path) -> str:
    """Of the text, so that an end of line is the same on every system."""
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def listed() -> dict[str, str]:
    """Name -> both digests, a blank between them. SourceError for a damaged list."""
    return _read(LIST) | _read(OWN)


def _read(path: Path) -> dict[str, str]:
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        where = path.relative_to(ROOT).as_posix()
        raise SourceError(f"{where}: damaged: {error}; git restores it") from None


def stale(path: Path, inputs: str, known: dict[str, str]) -> bool:
    """Whether the file is missing or was made from other ``inputs``, their digest."""
    return not path.is_file() or known.get(name(path), "").split(" ")[0] != inputs


def edited(
    paths: Iterable[Path] | None = None, known: dict[str, str] | None = None
) -> list[str]:
    """The files, of these or of all, that are not as they were written."""
    known = listed() if known is None else known
    return [
        name(path)
        for path in (files() if paths is None else paths)
        if path.is_file()
        and _committed(path)
        and known.get(name(path), "").split(" ")[-1] != digest(path)
    ]


def check() -> None:
    """Raise SourceError when a generated file was edited."""
    if found := edited():
        more = f" and {len(found) - 1} more" if found[1:] else ""
        raise SourceError(
            f"{found[0]}{more}: not as written by render; make render writes it anew"
        )


def keep(paths: Iterable[Path], inputs: str) -> None:
    """List the files as they stand now, made from ``inputs``; drop what is gone."""
    for file, committed in ((LIST, True), (OWN, False)):
        made = {
            name(path): f"{inputs} {digest(path)}"
            for path in paths
            if _committed(path) == committed
        }
        kept = {n: d for n, d in _read(file).items() if (ROOT / n).is_file()} | made
        if kept or committed:
            write_whole(file, json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
