"""Records: what a measurement leaves behind, and the one way to read it.

A record is one JSON file for one machine and one experiment:
docs/records/<machine>/<experiment>.json. Provenance comes first, then the
names of the columns, then one raw row a line. Reading is all or nothing: a
damaged record raises one clear line and is never half-read. This module needs
neither torch nor matplotlib, since the site reads records while it builds.
"""

import datetime
import importlib.util
import json
import math
import os
import re
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

from scripts.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "docs" / "records"
EXPERIMENTS = ROOT / "scripts" / "experiments"

SIZES = ("tiny", "small", "medium", "full")
NAME = re.compile(r"[a-z][a-z0-9_]*")  # experiments
YOURS = "yours"  # the machine of `make reproduce`; git ignores its folders
MACHINE = re.compile(r"(?!.{61})[a-z0-9]+(-[a-z0-9]+)*")
TAKEN = ("zh", "en", "diagrams")  # folders beside the machines' own in docs/figures
# Text of a record stands on pages: nothing in it is unseen, a tag, entity or link.
UNSEEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}  # controls, bidi marks, surrogates
MARKUP = re.compile(r"<[A-Za-z/!?]|&(#|\w+;)|\]\(\s*([\w.+-]+:|//)")
LONGEST = 2000  # characters of one text
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
# Every record says where, with what, how and of which code it was made.
PROVENANCE = {
    "device": dict,  # name, kind ("cpu" or "gpu"), cores, threads, ...
    "os": str,
    "python": str,
    "versions": dict,  # package -> version, of everything that was timed
    "commit": str,
    "date": str,  # UTC, 2026-11-21T09:04:43Z
    "method": str,
    "seeds": list,
    "digest": str,  # of the measured code, see digest.py
}
EXPERIMENT_PARTS = ("measure", "facts", "WORDS", "plot")


class RecordError(UserError):
    """A record or a request that cannot be used as it stands. One line."""


@dataclass(frozen=True)
class Step:
    """One resumable piece of an experiment.

    ``cell`` names the step (JSON-able, unique within the experiment and
    size); ``run`` returns its raw rows, dicts with the same keys each. A
    ``timed`` step measures seconds: nothing else runs beside it. ``cost`` is
    its expected time relative to the other steps, for the time left. Steps of an
    earlier ``turn`` run first, whichever experiment they belong to; where steps take
    turns, costs are seconds.
    """

    cell: dict
    run: Callable[[], list[dict]]
    timed: bool = False
    cost: float = 1.0
    turn: int = 0


@dataclass(frozen=True)
class Record:
    """The rows of one experiment on one machine, with their provenance."""

    experiment: str
    machine: str
    size: str
    provenance: dict
    columns: list[str]
    rows: list[dict]
    path: Path | None = field(default=None, compare=False)
    # names of columns -> values -> rows: experiments ask for thousands of cells
    _index: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def kind(self) -> str:
        """What was measured: ``cpu`` or ``gpu``."""
        return self.provenance["device"]["kind"]

    @property
    def device(self) -> str:
        """The device's name as people write it."""
        return self.provenance["device"]["name"]

    @property
    def steps(self) -> list[int] | None:
        """[done, all] steps of a run that did not finish; None when it did."""
        return self.provenance.get("steps")

    @property
    def date(self) -> str:
        """The day of the measurement (UTC), 2026-11-21."""
        return self.provenance["date"][:10]

    def select(self, **wanted) -> list[dict]:
        """The rows that hold every wanted value, in their order."""
        names = tuple(wanted)
        try:
            if names not in self._index:
                self._index[names] = _by_values(self.rows, names)
            return list(self._index[names].get(tuple(wanted.values()), ()))
        except TypeError:  # a list, among the wanted values or in a column
            return [
                row
                for row in self.rows
                if all(row[name] == value for name, value in wanted.items())
            ]


def _by_values(rows: list[dict], names: tuple[str, ...]) -> dict[tuple, list[dict]]:
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


# What a cell may hold -----------------------------------------------------


@cache  # rows repeat their words
def _text_problem(text: str) -> str | None:
    if len(text) > LONGEST:
        return f"holds a text of {len(text)} characters; at most {LONGEST}"
    if unseen := [c for c in text if unicodedata.category(c) in UNSEEN]:
        return f"holds the unseen character U+{ord(unseen[0]):04X}"
    if found := MARKUP.search(text):
        return f"holds markup: {found[0]!r}"
    return None


def _scalar_problem(value: object) -> str | None:
    if isinstance(value, str):
        return _text_problem(value)
    if value is None or isinstance(value, (bool, int)):
        return None
    if isinstance(value, float):
        if math.isfinite(value):
            return None
        return f"holds {value}; write null for a value that does not exist"
    return f"holds a {type(value).__name__}"


def _cell_problem(value: object) -> str | None:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, list):
            problem = _cell_problem(item)
        else:
            problem = _scalar_problem(item)
        if problem:
            return problem
    return None


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "text", list: "list"}[type(value)]


def rows_problem(columns: list[str], rows: list[dict]) -> tuple[int, str] | None:
    """The first thing wrong with raw rows: (row number from 1, words)."""
    kinds: dict[str, tuple[str, int]] = {}
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            return number, f"is a {type(row).__name__}, not a dict"
        if list(row) != columns:
            other = sorted(set(row) ^ set(columns))
            what = ", ".join(map(repr, other)) if other else "their order"
            return number, f"has other columns than row 1 ({what})"
        for name, value in row.items():
            if problem := _cell_problem(value):
                return number, f"column {name!r} {problem}"
            if value is None:
                continue
            kind, first = kinds.setdefault(name, (_kind(value), number))
            if kind != _kind(value):
                return number, (
                    f"column {name!r} holds a {_kind(value)}, row {first} a {kind}"
                )
    return None


def _tree_problem(value: object, where: str) -> str | None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return f"{where} has a key that is not text"
            if problem := _text_problem(key):
                return f"a key of {where} {problem}"
            if problem := _tree_problem(item, f"{where}.{key}"):
                return problem
        return None
    problem = _cell_problem(value)
    return f"{where} {problem}" if problem else None


def _partial(steps: object) -> bool:
    counts = isinstance(steps, list) and all(type(count) is int for count in steps)
    return counts and len(steps) == 2 and 0 < steps[0] < steps[1]


def _is_date(text: str) -> bool:
    try:
        return bool(DATE.fullmatch(text) and datetime.datetime.fromisoformat(text))
    except ValueError:  # the 99th of a month
        return False


def _provenance_problem(provenance: object) -> str | None:
    if not isinstance(provenance, dict):
        return "provenance is not an object"
    for name, kind in PROVENANCE.items():
        if name not in provenance:
            return f"provenance lacks {name!r}"
        if not isinstance(provenance[name], kind):
            return f"provenance {name!r} is not a {kind.__name__}"
    device = provenance["device"]
    if not isinstance(device.get("name"), str) or not device["name"]:
        return "provenance 'device' has no name"
    if device.get("kind") not in ("cpu", "gpu"):
        return "provenance 'device' is neither kind 'cpu' nor 'gpu'"
    if not _is_date(provenance["date"]):
        return "provenance 'date' is not like 2026-11-21T09:04:43Z"
    if "steps" in provenance and not _partial(provenance["steps"]):
        return "provenance 'steps' is not [done, all] of an unfinished run"
    if not provenance["digest"]:
        return "provenance 'digest' is empty"
    return _tree_problem(provenance, "provenance")


def problem(record: Record) -> str | None:
    """The first thing wrong with a whole record, in words."""
    if words := _head_problem(record):
        return words
    found = rows_problem(record.columns, record.rows)
    return f"row {found[0]} {found[1]}" if found else None


def _head_problem(record: Record) -> str | None:
    """The first thing wrong with all but the rows."""
    if not NAME.fullmatch(record.experiment):
        return f"experiment {record.experiment!r} is not a snake_case name"
    if not MACHINE.fullmatch(record.machine):
        return f"machine {record.machine[:80]!r} is not a lower-kebab name"
    if record.machine in TAKEN:
        return f"machine {record.machine!r} is the name of another folder"
    if record.size not in SIZES:
        return f"size {record.size!r} is none of {', '.join(SIZES)}"
    if words := _provenance_problem(record.provenance):
        return words
    if not record.columns or len(set(record.columns)) != len(record.columns):
        return "columns are missing or named twice"
    if words := _cell_problem(record.columns):
        return f"the name of a column {words}"
    return None if record.rows else "no rows"


# Writing ------------------------------------------------------------------


def _rounded(value: object) -> object:
    """The same value with floats at five significant digits."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value


def _json(value: object) -> str:
    return json.dumps(_rounded(value), ensure_ascii=False, allow_nan=False)


def dumps(record: Record) -> str:
    """The record's file text: the same record always gives the same bytes."""
    if words := problem(record):
        raise RecordError(f"record of {record.experiment!r}: {words}")
    provenance = ",\n".join(
        f"    {_json(name)}: {_json(value)}"
        for name, value in record.provenance.items()
    )
    rows = ",\n".join(f"    {_json(list(row.values()))}" for row in record.rows)
    return (
        "{\n"
        f'  "experiment": {_json(record.experiment)},\n'
        f'  "machine": {_json(record.machine)},\n'
        f'  "size": {_json(record.size)},\n'
        f'  "provenance": {{\n{provenance}\n  }},\n'
        f'  "columns": {_json(record.columns)},\n'
        f'  "rows": [\n{rows}\n  ]\n'
        "}\n"
    )


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all: a temporary file, then a rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
            out.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def record_path(experiment: str, machine: str, root: Path = RECORDS) -> Path:
    """Where the record of an experiment on a machine stands."""
    return root / machine / f"{experiment}.json"


def save(record: Record, root: Path = RECORDS) -> Path:
    """File a record. Size ``tiny`` is for tests and is never recorded."""
    if record.size == "tiny":
        raise RecordError(
            f"record of {record.experiment!r}: size 'tiny' is never recorded"
        )
    text = dumps(record)
    path = record_path(record.experiment, record.machine, root)
    write_whole(path, text)
    return path


# Reading ------------------------------------------------------------------


def _shown(path: Path) -> str:
    try:
        return path.resolve().relative_to(ROOT).as_posix()
    except ValueError:
        return path.name


def _no_constant(name: str) -> float:
    raise ValueError(f"holds {name}; write null for a value that does not exist")


def _no_twins(pairs: list[tuple[str, object]]) -> dict:
    names = [name for name, _ in pairs]
    if twins := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"names {twins[0]!r} twice")
    return dict(pairs)


def loads(text: str, name: str, path: Path | None = None) -> Record:
    """A record from its text; ``name`` stands in messages for the file."""

    def damaged(words: str) -> RecordError:
        return RecordError(f"{name}: damaged record: {words}")

    try:
        data = json.loads(
            text, parse_constant=_no_constant, object_pairs_hook=_no_twins
        )
    except json.JSONDecodeError as error:
        raise damaged(f"line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise damaged(str(error) or "nested too deep") from None
    if not isinstance(data, dict):
        raise damaged("not an object")
    wanted = ("experiment", "machine", "size", "provenance", "columns", "rows")
    for part in wanted:
        if part not in data:
            raise damaged(f"no {part!r}")
    if extra := sorted(set(data) - set(wanted)):
        raise damaged(f"unknown part {extra[0]!r}")
    for part in ("experiment", "machine", "size"):
        if not isinstance(data[part], str):
            raise damaged(f"{part!r} is not text")
    columns, rows = data["columns"], data["rows"]
    if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
        raise damaged("'columns' is not a list of names")
    if not isinstance(rows, list):
        raise damaged("'rows' is not a list")

    first = 1 + next(  # the file's line of row 1, when rows stand one a line
        (i for i, line in enumerate(text.splitlines(), 1) if '"rows": [' in line), 0
    )

    def at(row: int) -> str:
        return f"row {row} (line {first + row - 1})" if first > 1 else f"row {row}"

    for number, row in enumerate(rows, start=1):
        if not isinstance(row, list):
            raise damaged(f"{at(number)} is not a list")
        if len(row) != len(columns):
            raise damaged(
                f"{at(number)} has {len(row)} values for {len(columns)} columns"
            )
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    if found := rows_problem(columns, named):
        raise damaged(f"{at(found[0])} {found[1]}")
    record = Record(
        data["experiment"],
        data["machine"],
        data["size"],
        data["provenance"],
        columns,
        named,
        path,
    )
    if words := _head_problem(record):  # its rows are right
        raise damaged(words)
    return record


def load(path: Path) -> Record:
    """Read one record file, whole, or raise RecordError."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RecordError(f"{_shown(path)}: no such record") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(
            f"{_shown(path)}: unreadable record: {type(error).__name__}"
        ) from None
    record = loads(text, _shown(path), path)
    if record.experiment != path.stem:
        raise RecordError(
            f"{_shown(path)}: damaged record: holds experiment {record.experiment!r}"
        )
    return record


def _sorted(records: Iterable[Record]) -> list[Record]:
    def place(record: Record) -> tuple:
        own, partial = record.machine == YOURS, record.steps is not None
        return own, partial, record.kind != "gpu", record.machine, record.experiment

    return sorted(records, key=place)


def find(experiment: str, root: Path = RECORDS) -> list[Record]:
    """All records of an experiment: complete ones first, of GPUs before CPUs; the
    reader's own last.
    """
    found = []
    for path in sorted(root.glob(f"*/{experiment}.json")):
        record = load(path)
        if record.machine != path.parent.name:
            raise RecordError(
                f"{_shown(path)}: damaged record: "
                f"holds machine {record.machine!r}, its folder is {path.parent.name!r}"
            )
        found.append(record)
    return _sorted(found)


# Experiments --------------------------------------------------------------


def experiments(folder: Path = EXPERIMENTS) -> list[str]:
    """The names of all experiments, sorted."""
    return sorted(p.stem for p in folder.glob("*.py") if NAME.fullmatch(p.stem))


def load_experiment(name: str, folder: Path = EXPERIMENTS) -> ModuleType:
    """Import an experiment; an unknown name lists the known ones."""
    known = experiments(folder)
    if name not in known:
        raise RecordError(
            f"unknown experiment {name!r}; known: {', '.join(known) or 'none'}"
        )
    path = (folder / f"{name}.py").resolve()
    qualified = f"scripts.experiments.{name}"
    module = sys.modules.get(qualified)
    if module is None or Path(module.__file__ or "").resolve() != path:
        spec = importlib.util.spec_from_file_location(qualified, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[qualified] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[qualified]
            raise
    for part in EXPERIMENT_PARTS:
        if not hasattr(module, part):
            raise RecordError(f"experiment {name!r} defines no {part!r}")
    return module
