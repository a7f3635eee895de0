"""`build.py mutants`: how many plausible mistakes the tests notice.

    build.py mutants snippets/rms_norm --each 5     try five variants a file
    build.py mutants --each 2 --minutes 60 --write  all snippets and scripts, on record

The first variant of every file is tried before the second of any, in an order without
a pattern: a run that time cuts short is a fair sample. What was seen is kept in
.cache/mutants.jsonl: a variant that was killed is not tried again while its file stays
as it is, one that lives is tried again once its suite has changed. ``--write`` puts the
counts and what lives into docs/data/mutants.json, a room of the project each; the rooms
that were not asked for stay. docs/data/mutants.yml says why a living one is no fault.
"""

import hashlib
import json
import math
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from scripts.measure import provenance
from scripts.measure.records import write_whole
from scripts.mutants import trial
from scripts.mutants.variants import Variant, variants
from scripts.site.reading.files import ROOT, read_json, read_yaml

SEEN = ROOT / ".cache" / "mutants.jsonl"
RECORD = ROOT / "docs" / "data" / "mutants.json"
REASONS = ROOT / "docs" / "data" / "mutants.yml"
FOLDERS = ("snippets", "scripts/measure", "scripts/site", "scripts/examine")
NO_LOGIC = ("scripts/site/pictures/diagrams",)  # drawings
SECONDS = 300  # a suite that takes longer has noticed
SLOWER = 5  # so does one that takes so many times what it takes unharmed
Z = 1.959964  # of the normal distribution, for 95 %


@dataclass(frozen=True)
class Tried:
    """One variant, what its suite said at first and what it says now."""

    file: str
    line: int
    kind: str
    old: str
    new: str
    before: str
    outcome: str


@dataclass(frozen=True)
class Counts:
    """Variants of a room. ``before`` counts those killed when they were first tried."""

    tried: int
    before: int
    killed: int
    equivalent: int

    @property
    def alive(self) -> int:
        return self.tried - self.killed - self.equivalent

    def score(self, killed: int | None = None) -> tuple[float, float, float]:
        """Share killed of those that are faults, with Wilson's 95 % interval."""
        n = self.tried - self.equivalent
        if not n:
            return 0.0, 0.0, 1.0
        share = (self.killed if killed is None else killed) / n
        middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
        half = math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
        half *= Z / (1 + Z**2 / n)
        return share, middle - half, middle + half


def arguments(parser) -> None:
    parser.add_argument("paths", nargs="*", help="files or folders; all when none")
    parser.add_argument("--each", type=int, default=3, metavar="N", help="per file")
    parser.add_argument("--minutes", type=float, help="stop asking after so long")
    parser.add_argument("--write", action="store_true", help="put it on record")


def run(options) -> None:
    paths = _files(options.paths or FOLDERS)
    until = time.monotonic() + 60 * (options.minutes or float("inf"))
    with trial.copy() as project:
        found = _try_all(project, _sample(project, paths, options.each), until)
    for one in found:
        if one.outcome == trial.ALIVE and not reason(one):
            print(f"{one.file}:{one.line}: {one.kind}: {_short(one)}")
    for room, held in _rooms(found).items():
        print(f"{room}: {_said(count(held))}")
    if options.write:
        kept = read_json(RECORD) if RECORD.is_file() else {}
        write_whole(RECORD, json.dumps(kept | _record(found), indent=1) + "\n")


def _files(paths) -> list[str]:
    found = []
    for path in paths:
        where = ROOT / path
        inside = [where] if where.is_file() else sorted(where.rglob("*.py"))
        if not inside:
            raise trial.TrialError(f"no Python file at {path}")
        found += [file.relative_to(ROOT).as_posix() for file in inside]
    return [file for file in found if not file.startswith(NO_LOGIC)]


def _sample(project: Path, paths: list[str], each: int) -> list[tuple[str, Variant]]:
    """The first of each file, then the second of each, without a pattern in a round."""
    ranked = []
    for path in paths:
        text = (project / path).read_text(encoding="utf-8")
        for rank, variant in enumerate(variants(text)[:each]):
            ranked.append((rank, _hash(path + variant.lot), path, variant))
    return [
        (path, variant) for *_, path, variant in sorted(ranked, key=lambda r: r[:2])
    ]


def _try_all(project: Path, sample, until: float) -> list[Tried]:
    known, sound, found = _seen(), {}, []
    suites = cache(lambda path: _digest(project, trial.suite(path)))
    for path, variant in sample:
        key = f"{_digest(project, [path])}:{variant.lot}"
        said = known.get(key, [])
        again = not said or (said[-1][0] == trial.ALIVE and said[-1][1] != suites(path))
        if again and time.monotonic() < until and (most := _most(project, path, sound)):
            outcome = trial.outcome(project, path, variant.text, most)
            _keep(key, outcome, suites(path))
            said = [*said, (outcome, suites(path))]
            print(f"{outcome:6} {path}:{variant.line} {_short(variant)}", flush=True)
        if not said:
            continue
        v = variant
        before, now = said[0][0], said[-1][0]
        found.append(Tried(path, v.line, v.kind, v.old, v.new, before, now))
    return found


def _most(project: Path, path: str, sound: dict) -> float:
    """Seconds that the suite of a file may take; 0 if it fails unharmed.

    ``sound`` remembers each suite: it is run once, and once more for each file that
    prints, without the tests.
    """
    suite = tuple(trial.suite(path))
    prints = (project / path).with_suffix(".out").is_file()
    text = (project / path).read_text(encoding="utf-8")
    for part, needed in ((suite, True), (path, prints)):
        if needed and part not in sound:
            tests = list(suite) if part is suite else []
            start = time.monotonic()
            said = trial.outcome(project, path, text, SECONDS, tests)
            sound[part] = (time.monotonic() - start) * (said == trial.ALIVE)
            if not sound[part]:
                print(f"left out: {' '.join(suite)} fails, or takes too long: {path}")
    if not sound[suite] or not sound.get(path, 1.0):
        return 0.0
    return min(SECONDS, 10 + SLOWER * (sound[suite] + sound.get(path, 0.0)))


def _digest(project: Path, parts: list[str]) -> str:
    """Of files and of the Python files in folders."""
    files = []
    for part in parts:
        where = project / part
        files += [where] if where.is_file() else sorted(where.rglob("*.py"))
    return _hash("\0".join(file.read_text(encoding="utf-8") for file in files))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _seen() -> dict[str, list[tuple[str, str]]]:
    """{variant of a text: what each suite said of it, and which suite, in order}"""
    found: dict[str, list[tuple[str, str]]] = {}
    if SEEN.is_file():
        for line in SEEN.read_text(encoding="utf-8").splitlines():
            if line.endswith("]") and len(row := json.loads(line)) == 3:
                found.setdefault(row[0], []).append((row[1], row[2]))
    return found


def _keep(*row: str) -> None:
    SEEN.parent.mkdir(exist_ok=True)
    with SEEN.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def reason(one: Tried | Variant) -> dict | None:
    """Why a living variant is no fault, in both languages."""
    for row in read_yaml(REASONS):
        if (row["file"], row["old"], row["new"]) == (one.file, one.old, one.new):
            return row["why"]
    return None


def _short(one) -> str:
    old, new = (" ".join(text.split())[:70] for text in (one.old, one.new))
    return f"{old}  became  {new}"


def _rooms(found: list[Tried]) -> dict[str, list[Tried]]:
    rooms: dict[str, list[Tried]] = {}
    for room in FOLDERS:
        if held := [one for one in found if one.file.startswith(f"{room}/")]:
            rooms[room] = held
    return rooms


def count(found: list[Tried]) -> Counts:
    lives = [one for one in found if one.outcome == trial.ALIVE]
    return Counts(
        tried=len(found),
        before=sum(one.before != trial.ALIVE for one in found),
        killed=len(found) - len(lives),
        equivalent=sum(bool(reason(one)) for one in lives),
    )


def _said(counts: Counts) -> str:
    share, low, high = (f"{100 * x:.1f}" for x in counts.score())
    return (
        f"{counts.tried} tried, {counts.killed} killed ({counts.before} at first), "
        f"{counts.equivalent} equivalent, {counts.alive} alive: "
        f"{share} % [{low}, {high}]"
    )


def _record(found: list[Tried]) -> dict:
    """The table as the project keeps it: counts of each room, and all that lives."""
    record = {}
    for room, held in _rooms(found).items():
        alive = [one for one in held if one.outcome == trial.ALIVE and not reason(one)]
        counts = count(held)
        record[room] = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "commit": provenance.commit(),
            **asdict(counts),
            "score": [round(share, 4) for share in counts.score()],
            "alive": [
                {name: getattr(one, name) for name in ("file", "line", "old", "new")}
                for one in alive
            ],
        }
    return record
