"""Accept records that were made on another machine.

A bundle is one JSON record, or a .zip or .tar.gz with a few of them. Every
record is checked before the first one is filed, against the code, the clock, its
commit and the words on its pages, and what is not right is refused with one line: a
bundle is filed whole or not at all.
"""

import json
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from types import ModuleType

from scripts.measure import figures, provenance
from scripts.measure.digest import code_digest
from scripts.measure.records import (
    EXPERIMENTS,
    RECORDS,
    SIZES,
    YOURS,
    Record,
    RecordError,
    dumps,
    experiments,
    find,
    load,
    load_experiment,
    loads,
    record_path,
    write_whole,
)

MOST_RECORDS = 32
MOST_BYTES = 8 * 2**20  # of one record


def _refuse(file: Path, words: str) -> RecordError:
    return RecordError(f"{file.name}: refused: {words}")


def _safe(file: Path, name: str) -> None:
    """A member is a plain relative path to a .json file."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
        raise _refuse(file, f"{name!r} points outside the bundle")
    if path.suffix != ".json":
        raise _refuse(file, f"{name!r} is not a .json record")


def _members(file: Path) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each record in the bundle."""
    if file.name.endswith(".json"):
        if file.stat().st_size > MOST_BYTES:
            raise _refuse(file, "too big for a record")
        yield file.name, file.read_bytes()
    elif file.name.endswith(".zip"):
        with zipfile.ZipFile(file) as bundle:
            entries = [e for e in bundle.infolist() if not e.is_dir()]
            _few(file, len(entries))
            for entry in entries:
                _safe(file, entry.filename)
                # Unix mode in the high half: only plain files (or no mode).
                if (entry.external_attr >> 16) & 0o170000 not in (0, 0o100000):
                    raise _refuse(file, f"{entry.filename!r} is not a plain file")
                with bundle.open(entry) as source:
                    yield entry.filename, _read(file, entry.filename, source)
    elif file.name.endswith((".tar.gz", ".tgz")):
        with tarfile.open(file, "r:gz") as bundle:
            count = 0
            for entry in bundle:
                if entry.isdir():
                    continue
                count += 1
                _few(file, count)
                _safe(file, entry.name)
                if not entry.isreg():
                    raise _refuse(file, f"{entry.name!r} is not a plain file")
                yield entry.name, _read(file, entry.name, bundle.extractfile(entry))
    else:
        raise _refuse(file, "not a .json, .zip or .tar.gz file")


def _few(file: Path, count: int) -> None:
    if count > MOST_RECORDS:
        raise _refuse(file, f"more than {MOST_RECORDS} files")


def _read(file: Path, name: str, source) -> bytes:
    content = source.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise _refuse(file, f"{name!r} is too big for a record")
    return content


def _record(file: Path, name: str, content: bytes) -> Record:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise _refuse(file, f"{name!r} is not UTF-8 text") from None
    return loads(text, name if name == file.name else f"{file.name}: {name}")


def accept(
    file: Path, *, root: Path = RECORDS, folder: Path = EXPERIMENTS
) -> list[Path]:
    """Check a bundle of records and file all of them; the paths written."""
    file = Path(file)
    if not file.is_file():
        raise RecordError(f"{file.name}: no such file")
    wanted: dict[Path, Record] = {}
    for name, record in _records(file):
        if problem := _problem(name, record, folder) or _place_problem(record, root):
            raise _refuse(file, problem)
        path = record_path(record.experiment, record.machine, root)
        if path in wanted:
            raise _refuse(file, f"two records for {path.parent.name}/{path.name}")
        wanted[path] = record
    if not wanted:
        raise _refuse(file, "holds no record")
    return _file(file, wanted)


def _records(file: Path) -> list[tuple[str, Record]]:
    """All (name, record) of the bundle, each a whole one."""
    try:
        members = list(_members(file))
    except (RuntimeError, NotImplementedError):
        raise _refuse(file, "encrypted or oddly packed archive") from None
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError) as e:
        what = "damaged archive" if file.suffix != ".json" else str(e.strerror)
        raise _refuse(file, what) from None
    return [(name, _record(file, name, content)) for name, content in members]


def _problem(name: str, record: Record, folder: Path) -> str | None:
    """What speaks against the record, whatever is filed already."""
    known = experiments(folder)
    if PurePosixPath(name).stem != record.experiment:
        return f"{name!r} holds {record.experiment!r}"
    if record.experiment not in known:
        names = ", ".join(known) or "none"
        return f"unknown experiment {record.experiment!r}; known: {names}"
    if record.size == "tiny":
        return f"{name!r} is of size 'tiny', never recorded"
    if record.machine == YOURS:
        return f"{name!r} is of machine {YOURS!r}, which is not filed; set MACHINE"
    module = load_experiment(record.experiment, folder)
    if record.size not in getattr(module, "SIZES", SIZES):
        return f"{record.experiment!r} has no size {record.size!r}"
    device = getattr(module, "DEVICE", record.kind)
    if record.kind != device:
        return (
            f"{record.experiment!r} measures a {device}, {name!r} is of a {record.kind}"
        )
    if len(set(map(json.dumps, record.rows))) < len(record.rows):
        return f"{name!r} holds a row twice"
    return (
        _date_problem(record) or _code_problem(record, folder) or _said(record, module)
    )


def _date_problem(record: Record) -> str | None:
    made, commit = record.provenance["date"], record.provenance["commit"]
    if made > provenance.now():
        return f"measured in the future ({made})"
    if commit.removesuffix("-dirty") == "unknown":
        return None
    if not provenance.COMMIT.fullmatch(commit):
        return f"commit {commit[:80]!r} is none"
    committed = provenance.commit_date(commit)  # None when history was rewritten
    if committed and made < committed:
        return f"measured at {made}, before its commit {commit} ({committed})"
    return None


def _code_problem(record: Record, folder: Path) -> str | None:
    now, then = code_digest(record.experiment, folder=folder), record.provenance
    if then["digest"] == now:
        return None
    return f"measured with other code (digest {then['digest'][:40]!r}, here {now!r})"


def _said(record: Record, module: ModuleType) -> str | None:
    """Why the record's facts and words cannot be made, if they cannot."""
    try:
        facts = module.facts(record)
        for words in module.WORDS.values():
            figures.fill(words, facts)
    except Exception as error:  # whatever an experiment stumbles over
        rows = f"{len(record.rows)} rows"
        if record.steps:
            rows += f" of {record.steps[0]} of {record.steps[1]} steps"
        why = " ".join(str(error).split())
        return f"no facts from its {rows}: {type(error).__name__}: {why}"
    return None


def _place_problem(record: Record, root: Path) -> str | None:
    """What speaks against the record beside those that are filed."""
    for other in find(record.experiment, root):
        differ = sorted(set(other.columns) ^ set(record.columns))
        alike = other.kind, other.provenance["digest"]
        if differ and alike == (record.kind, record.provenance["digest"]):
            return f"column {differ[0]!r} is not in both this and {other.machine}'s"
    path = record_path(record.experiment, record.machine, root)
    if not path.exists():
        return None
    filed, where = load(path), f"{path.parent.name}/{path.name}"
    if record.steps and not filed.steps:
        done = f"{record.steps[0]} of {record.steps[1]} steps"
        return f"{where} is complete, this one has {done}"
    if SIZES.index(record.size) < SIZES.index(filed.size):
        return f"{where} is of size {filed.size!r}, this one is of size {record.size!r}"
    if filed.provenance["date"] > record.provenance["date"]:
        return f"{where} is newer ({filed.date}, this one is of {record.date})"
    return None


def _file(file: Path, wanted: dict[Path, Record]) -> list[Path]:
    """Write all records, then give them their names: all of them or none."""
    drafts = {path: path.with_name(f".{path.name}.new") for path in wanted}
    try:
        for path, draft in drafts.items():
            write_whole(draft, dumps(wanted[path]))
        for path, draft in drafts.items():
            draft.replace(path)
    except OSError as error:
        for draft in drafts.values():
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        raise RecordError(f"{file.name}: not filed: {error.strerror}") from None
    return list(wanted)
