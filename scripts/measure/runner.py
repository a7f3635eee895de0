"""Run experiments: progress, a journal that survives an interruption, records.

Each finished step is appended to .cache/measure/<machine>/, so a run that was
stopped goes on where it was. The journal is bound to the digest of the
measured code and to the versions of what is timed; one of other code is set
aside, never mixed in. A finished run writes its record and drops the journal.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from scripts.measure import digest, provenance, workers
from scripts.measure.records import (
    EXPERIMENTS,
    RECORDS,
    ROOT,
    SIZES,
    Record,
    RecordError,
    Step,
    experiments,
    load_experiment,
    rows_problem,
    save,
)

CACHE = ROOT / ".cache" / "measure"
COMMAND = "python scripts/build.py measure"


@dataclass
class Outcome:
    """What a run did: records in memory, files written, what is missing."""

    records: list[Record] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)


class Interrupted(SystemExit):
    """Ctrl-C: the journal is kept, one line said how to go on."""

    def __init__(self) -> None:
        super().__init__(130)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Seconds for people: 8 s, 3 min 20 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _key(cell: dict) -> str:
    return json.dumps(cell, sort_keys=True, ensure_ascii=False)


class Journal:
    """Finished steps of one run, one JSON line each, after a header line."""

    def __init__(self, path: Path, header: dict):
        self.path, self.header = path, header
        self.done: dict[str, list[dict]] = {}
        if not path.exists():
            return
        lines = path.read_text(encoding="utf-8").split("\n")
        lines.pop()  # after the last line break: nothing, or a torn line
        try:
            parsed = [json.loads(line) for line in lines]
            if not parsed or parsed[0] != header:
                raise ValueError("other code, or other versions")
            self.done = {_key(entry["cell"]): entry["rows"] for entry in parsed[1:]}
        except (ValueError, KeyError, TypeError) as error:
            aside = path.with_suffix(".old.jsonl")
            path.replace(aside)
            why = "damaged" if isinstance(error, json.JSONDecodeError) else error
            _say(f"{path.name}: set aside as {aside.name} ({why}); starting anew")
        else:
            # Drop a torn last line, which a killed run leaves.
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def append(self, cell: dict, rows: list[dict]) -> None:
        """Keep a finished step."""
        text = ""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(self.header) + "\n"
        text += json.dumps({"cell": cell, "rows": rows}, ensure_ascii=False) + "\n"
        with self.path.open("a", encoding="utf-8") as out:
            out.write(text)
        self.done[_key(cell)] = rows

    def drop(self) -> None:
        """The record is written: the journal has served."""
        self.path.unlink(missing_ok=True)


def _steps(name: str, module: ModuleType, size: str) -> list[Step]:
    steps = module.measure(size)
    keys = [_key(step.cell) for step in steps]
    if not keys:
        raise RecordError(f"experiment {name!r} has no steps at size {size!r}")
    if twins := [key for key in keys if keys.count(key) > 1]:
        raise RecordError(f"experiment {name!r} has two steps {twins[0]}")
    return steps


def _checked(name: str, step: Step, known: list[dict], rows: list[dict]) -> None:
    if not rows:
        raise RecordError(f"experiment {name!r}: step {_key(step.cell)} gave no rows")
    columns = list((known or rows)[0])
    # Only the first known row is needed to hold the new ones against.
    found = rows_problem(columns, known[:1] + rows)
    if found:
        raise RecordError(
            f"experiment {name!r}: step {_key(step.cell)} gave a row that {found[1]}"
        )


def _record(
    name: str, module: ModuleType, size: str, rows: list[dict], folder: Path
) -> Record:
    made = provenance.provenance(name, module, rows, folder=folder)
    machine = provenance.machine_name(described=made["device"])
    return Record(name, machine, size, made, list(rows[0]), rows)


def trial(name: str, size: str = "tiny", folder: Path = EXPERIMENTS) -> Record:
    """Run an experiment in memory: no journal, no file. For tests and trials."""
    module = load_experiment(name, folder)
    rows: list[dict] = []
    for step in _steps(name, module, size):
        new = step.run()
        _checked(name, step, rows, new)
        rows += new
    return _record(name, module, size, rows, folder)


def _shown(cell: dict) -> str:
    return ", ".join(f"{key} {value}" for key, value in cell.items())


def _in_turn(
    steps: list[Step],
    todo: list[int],
    time_left: Callable[[], bool],
    clock: Callable[[], float],
) -> Iterator[tuple[int, list[dict], float]]:
    """(index, rows, seconds) of each step, one after the other in this process."""
    for index in todo:
        if not time_left():
            return
        begun = clock()
        rows = steps[index].run()
        yield index, rows, clock() - begun


def _work(
    name: str,
    steps: list[Step],
    todo: list[int],
    work: Iterator[tuple[int, list[dict], float]],
    journal: Journal,
    processes: int,
) -> None:
    """Journal each step as it ends; say how far the run is and what is left."""
    known = next(iter(journal.done.values()), [])
    spent = cost = 0.0
    left = sum(steps[index].cost for index in todo)
    for index, rows, seconds in work:
        step = steps[index]
        _checked(name, step, known, rows)
        journal.append(step.cell, rows)
        known = known or rows
        spent, cost, left = spent + seconds, cost + step.cost, left - step.cost
        text = f"{name} {len(journal.done)}/{len(steps)} ({_shown(step.cell)}) "
        text += duration(seconds)
        if len(journal.done) < len(steps):
            text += f", about {duration(left * spent / cost / processes)} left"
        _say(text)


def measure(
    names: Sequence[str] = (),
    size: str = "small",
    *,
    deadline: float | None = None,
    root: Path = RECORDS,
    cache: Path = CACHE,
    folder: Path = EXPERIMENTS,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Run experiments (all without names) and write their records.

    ``deadline`` stops after the step during which so many seconds have
    passed. A size `tiny` run is never recorded. Bad names or sizes raise
    RecordError before anything runs.
    """
    if size not in SIZES:
        raise RecordError(f"unknown size {size!r}; known: {', '.join(SIZES)}")
    names = list(dict.fromkeys(names)) or experiments(folder)
    modules = {name: load_experiment(name, folder) for name in names}
    outcome = Outcome()
    has_gpu = provenance.gpu() is not None

    skipped = [
        name
        for name, module in modules.items()
        if not has_gpu
        and (size == "full" or (getattr(module, "DEVICE", None) == "gpu"))
    ]
    if skipped:
        cpu = [n for n in skipped if getattr(modules[n], "DEVICE", None) != "gpu"]
        how = f"; on this CPU: {COMMAND} {' '.join(cpu)} --size small" if cpu else ""
        _say(f"no GPU here, skipped: {', '.join(skipped)}{how}")
        outcome.skipped = skipped

    start = clock()

    def time_left() -> bool:
        return deadline is None or clock() - start < deadline

    for name in names:
        if name in skipped:
            continue
        module = modules[name]
        steps = _steps(name, module, size)
        machine = provenance.machine_name(getattr(module, "DEVICE", None))
        header = {
            "experiment": name,
            "size": size,
            "digest": digest.code_digest(name, folder=folder),
            "versions": provenance.versions(digest.packages(name, folder=folder)),
        }
        journal = Journal(cache / machine / f"{name}.{size}.jsonl", header)
        todo = [
            n for n, step in enumerate(steps) if _key(step.cell) not in journal.done
        ]
        if kept := len(steps) - len(todo):
            _say(f"{name}: going on, {kept} of {len(steps)} steps were done")
        if processes := provenance.processes(module):
            work = workers.share(name, size, folder, steps, todo, processes, time_left)
        else:
            work = _in_turn(steps, todo, time_left, clock)
        try:
            _work(name, steps, todo, work, journal, processes or 1)
        except KeyboardInterrupt:
            done = len(journal.done)
            _say(
                f"\n{name}: stopped, {done} of {len(steps)} steps are kept; "
                f"go on with: {COMMAND} {name} --size {size}"
            )
            raise Interrupted from None
        finally:
            work.close()
        if len(journal.done) < len(steps):
            done = len(journal.done)
            _say(
                f"{name}: time is up, {done} of {len(steps)} steps are kept; "
                f"go on with: {COMMAND} {name} --size {size}"
            )
            outcome.unfinished.append(name)
            continue
        rows = [row for step in steps for row in journal.done[_key(step.cell)]]
        record = _record(name, module, size, rows, folder)
        outcome.records.append(record)
        if size == "tiny":
            _say(f"{name}: ran; size 'tiny' is never recorded")
        else:
            path = save(record, root)
            outcome.written.append(path)
            _say(f"{name}: wrote {machine}/{path.name}")
        journal.drop()
    return outcome
