"""Accept records that were made on another machine.

A bundle is one JSON record, or a .zip or .tar.gz with a few of them. Every
record is checked before the first one is filed, and what is not right is
refused with one line: a bundle is filed whole or not at all.
"""

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from scripts.measure.records import (
    EXPERIMENTS,
    RECORDS,
    SIZES,
    Record,
    RecordError,
    dumps,
    experiments,
    load,
    loads,
    record_path,
    save,
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
    known = experiments(folder)
    wanted: dict[Path, Record] = {}
    try:
        for name, content in _members(file):
            record = _record(file, name, content)
            if PurePosixPath(name).stem != record.experiment:
                raise _refuse(file, f"{name!r} holds {record.experiment!r}")
            if record.experiment not in known:
                raise _refuse(
                    file,
                    f"unknown experiment {record.experiment!r}; "
                    f"known: {', '.join(known) or 'none'}",
                )
            if record.size == "tiny":
                raise _refuse(file, f"{name!r} is of size 'tiny', never recorded")
            path = record_path(record.experiment, record.machine, root)
            if path in wanted:
                raise _refuse(file, f"two records for {path.parent.name}/{path.name}")
            if path.exists():
                filed = load(path)
                if record.steps and not filed.steps:
                    raise _refuse(
                        file,
                        f"{path.parent.name}/{path.name} is complete, this one has "
                        f"{record.steps[0]} of {record.steps[1]} steps",
                    )
                if SIZES.index(record.size) < SIZES.index(filed.size):
                    raise _refuse(
                        file,
                        f"{path.parent.name}/{path.name} is of size {filed.size!r}, "
                        f"this one is of size {record.size!r}",
                    )
                if filed.provenance["date"] > record.provenance["date"]:
                    raise _refuse(
                        file,
                        f"{path.parent.name}/{path.name} is newer "
                        f"({filed.date}, this one is of {record.date})",
                    )
            dumps(record)  # what cannot be written is refused before any is
            wanted[path] = record
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError):
        raise _refuse(file, "damaged archive") from None
    except (RuntimeError, NotImplementedError):
        raise _refuse(file, "encrypted or oddly packed archive") from None
    if not wanted:
        raise _refuse(file, "holds no record")
    return [save(record, root) for record in wanted.values()]
