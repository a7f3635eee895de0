"""Generated files are what `render` wrote: docs/generated.json holds their digests.

Figures, diagrams, executed labs and .out files are committed; an edit by hand, of a
curve or of a number, shows here. That their inputs are the present ones is another
question: each carries or has a digest of what it was made from.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from scripts.measure.records import YOURS, write_whole
from scripts.site.reading import outputs
from scripts.site.reading.source import ROOT, SourceError

LIST = ROOT / "docs" / "generated.json"
FIGURES = ROOT / "docs" / "figures"


def files() -> list[Path]:
    """All generated files that are committed; the reader's own figures are not."""
    drawn = (path for path in FIGURES.rglob("*") if path.is_file())
    return [*filter(_committed, sorted(drawn)), *outputs.files()]


def _committed(path: Path) -> bool:
    return path.parent.name != YOURS and not path.name.startswith(".")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def digest(path: Path) -> str:
    """Of the text, so that an end of line is the same on every system."""
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:16]


def listed() -> dict[str, str]:
    return outputs.read_list(LIST)


def edited(paths: Iterable[Path] | None = None) -> list[str]:
    """The files, of these or of all, that are not as they were written."""
    known = listed()
    return [
        name(path)
        for path in (files() if paths is None else paths)
        if path.is_file() and _committed(path) and known.get(name(path)) != digest(path)
    ]


def check() -> None:
    """Raise SourceError when a generated file was edited."""
    if found := edited():
        more = f" and {len(found) - 1} more" if found[1:] else ""
        raise SourceError(
            f"{found[0]}{more}: not as written by render; make render writes it anew"
        )


def keep(paths: Iterable[Path]) -> None:
    """List the files as they stand now, and drop what is gone."""
    kept = {n: d for n, d in listed().items() if (ROOT / n).is_file()}
    kept |= {name(path): digest(path) for path in paths if _committed(path)}
    write_whole(LIST, json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
