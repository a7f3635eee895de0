"""`build.py mutants`: how many plausible mistakes the tests notice.

    build.py mutants snippets/rms_norm --each 5     try five variants a file
    build.py mutants --each 2 --write               all snippets and scripts, on record

A variant is tried once: what was seen is kept in .cache/mutants.jsonl until the file
or its suite changes, so a run that was stopped goes on. ``--write`` puts the counts
and what lives into docs/data/mutants.json; docs/data/mutants.yml says why a living one
is no fault.
"""

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from scripts.measure import provenance
from scripts.measure.records import write_whole
from scripts.mutants import trial
from scripts.mutants.variants import Variant, variants
from scripts.site.reading.files import ROOT, read_yaml

SEEN = ROOT / ".cache" / "mutants.jsonl"
RECORD = ROOT / "docs" / "data" / "mutants.json"
REASONS = ROOT / "docs" / "data" / "mutants.yml"
FOLDERS = ("snippets", "scripts/measure", "scripts/site", "scripts/examine")
NO_LOGIC = ("scripts/site/pictures/diagrams",)  # drawings
SECONDS = 300  # a suite that takes longer has noticed


@dataclass(frozen=True)
class Tried:
    """One variant and what its suite said."""

    file: str
    line: int
    kind: str
    old: str
    new: str
    outcome: str


def arguments(parser) -> None:
    parser.add_argument("paths", nargs="*", help="files or folders; all when none")
    parser.add_argument("--each", type=int, default=3, metavar="N", help="per file")
    parser.add_argument("--minutes", type=float, help="stop asking after so long")
    parser.add_argument("--write", action="store_true", help="put it on record")


def run(options) -> None:
    paths = _files(options.paths or FOLDERS)
    until = time.monotonic() + 60 * (options.minutes or float("inf"))
    found, known = [], _seen()
    with trial.copy() as project:
        for path in paths:
            found += _try(project, path, options.each, known, until)
    alive = [one for one in found if one.outcome == trial.ALIVE]
    for one in alive:
        if not reason(one):
            print(f"{one.file}:{one.line}: {one.kind}: {_short(one)}")
    print(
        f"{len(found)} tried, {len(alive)} alive, {_unexplained(alive)} without reason"
    )
    if options.write:
        write_whole(RECORD, json.dumps(_record(found), indent=1) + "\n")


def _files(paths) -> list[str]:
    found = []
    for path in paths:
        where = ROOT / path
        inside = [where] if where.is_file() else sorted(where.rglob("*.py"))
        if not inside:
            raise trial.TrialError(f"no Python file at {path}")
        found += [file.relative_to(ROOT).as_posix() for file in inside]
    return [file for file in found if not file.startswith(NO_LOGIC)]


def _try(project: Path, path: str, each: int, known: dict, until: float) -> list[Tried]:
    text = (ROOT / path).read_text(encoding="utf-8")
    chosen = variants(text)[:each]
    suite = _digest(path)
    keys = [f"{suite}:{variant.lot}" for variant in chosen]
    missing = [key for key in keys if key not in known]
    if missing and time.monotonic() < until:
        if trial.outcome(project, path, text, SECONDS) != trial.ALIVE:
            raise trial.TrialError(f"{path}: its own tests fail, or take too long")
        for key, variant in zip(keys, chosen, strict=True):
            if key in missing and time.monotonic() < until:
                said = trial.outcome(project, path, variant.text, SECONDS)
                known[key] = _keep(key, said)
                print(f"{said:6} {path}:{variant.line} {_short(variant)}", flush=True)
    return [
        Tried(path, v.line, v.kind, v.old, v.new, known[key])
        for key, v in zip(keys, chosen, strict=True)
        if key in known
    ]


def _digest(path: str) -> str:
    """Of the file and of the suite that tries it."""
    files = [ROOT / path]
    for part in trial.suite(path):
        where = ROOT / part
        files += [where] if where.is_file() else sorted(where.rglob("*.py"))
    texts = b"\0".join(file.read_bytes() for file in files)
    return hashlib.sha256(texts).hexdigest()[:16]


def _seen() -> dict[str, str]:
    if not SEEN.is_file():
        return {}
    lines = SEEN.read_text(encoding="utf-8").splitlines()
    return dict(json.loads(line) for line in lines if line.endswith("]"))


def _keep(key: str, said: str) -> str:
    SEEN.parent.mkdir(exist_ok=True)
    with SEEN.open("a", encoding="utf-8") as file:
        file.write(json.dumps([key, said]) + "\n")
    return said


def reason(one: Tried | Variant) -> dict | None:
    """Why a living variant is no fault, in both languages."""
    for row in read_yaml(REASONS):
        if (row["file"], row["old"], row["new"]) == (one.file, one.old, one.new):
            return row["why"]
    return None


def _unexplained(alive: list[Tried]) -> int:
    return sum(reason(one) is None for one in alive)


def _short(one) -> str:
    old, new = (" ".join(text.split())[:70] for text in (one.old, one.new))
    return f"{old}  became  {new}"


def _record(found: list[Tried]) -> dict:
    """The table as the project keeps it: counts a folder, and all that lives."""
    folders: dict[str, dict[str, int]] = {}
    for one in found:
        counts = folders.setdefault(
            str(Path(one.file).parent), {"tried": 0, "killed": 0, "equivalent": 0}
        )
        counts["tried"] += 1
        counts["killed"] += one.outcome != trial.ALIVE
        counts["equivalent"] += one.outcome == trial.ALIVE and bool(reason(one))
    alive = [asdict(one) for one in found if one.outcome == trial.ALIVE]
    for row in alive:
        row.pop("outcome")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": provenance.commit(),
        "folders": folders,
        "alive": alive,
    }
