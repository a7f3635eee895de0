"""Run experiments: progress, a journal that survives an interruption, records.

Each finished step is appended to a journal in .cache/measure/<machine>/, so a run
that was stopped goes on where it was, also on another machine of the same name when
the folder is taken there. The journal is bound to the digest of the measured code
and to the versions of what is timed; one of other code is set aside, never mixed in.
A measurement of hours is handed on in pieces: without a journal of its own, a run
begins with a copy of the one committed in scripts/experiments/journals/<machine>/.
A run that is stopped leaves a partial record beside its journal; a finished one
writes its record and drops both.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from math import inf
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
    load,
    load_experiment,
    record_path,
    rows_problem,
    save,
    write_whole,
)

CACHE = ROOT / ".cache" / "measure"
HANDED_ON = "journals"  # in the folder of the experiments
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
        self.seconds: dict[str, float] = {}
        if not path.exists():
            return
        lines = path.read_text(encoding="utf-8").split("\n")
        torn = lines.pop()  # after the last line break: nothing, or a torn line
        try:
            parsed = [json.loads(line) for line in lines]
            if not parsed or parsed[0] != header:
                raise ValueError("other code, or other versions")
            self.done = {_key(entry["cell"]): entry["rows"] for entry in parsed[1:]}
            self.seconds = {
                _key(entry["cell"]): float(entry["seconds"])
                for entry in parsed[1:]
                if "seconds" in entry
            }
        except (ValueError, KeyError, TypeError) as error:
            aside = path.with_suffix(".old.jsonl")
            path.replace(aside)
            why = "damaged" if isinstance(error, json.JSONDecodeError) else error
            _say(f"{path.name}: set aside as {aside.name} ({why}); starting anew")
        else:
            if torn:  # a killed run leaves it
                write_whole(path, "".join(f"{line}\n" for line in lines))

    def append(self, cell: dict, rows: list[dict], seconds: float) -> None:
        """Keep a finished step and how long it took."""
        text = ""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(self.header) + "\n"
        entry = {"cell": cell, "seconds": round(seconds, 3), "rows": rows}
        text += json.dumps(entry, ensure_ascii=False) + "\n"
        with self.path.open("a", encoding="utf-8") as out:
            out.write(text)
        self.done[_key(cell)], self.seconds[_key(cell)] = rows, seconds

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


def shown(cell: dict) -> str:
    """A step's cell in one line."""
    return ", ".join(f"{key} {value}" for key, value in cell.items())


class _Run:
    """An experiment under way: its steps, its journal and when it has to end."""

    def __init__(
        self,
        name: str,
        module: ModuleType,
        size: str,
        cache: Path,
        folder: Path,
        end: float,
        clock: Callable[[], float],
    ) -> None:
        self.name, self.module, self.size = name, module, size
        self.cache, self.folder, self.end, self.clock = cache, folder, end, clock
        self.steps = _steps(name, module, size)
        self.keys = [_key(step.cell) for step in self.steps]
        self.machine = provenance.machine_name(getattr(module, "DEVICE", None))
        header = {
            "experiment": name,
            "size": size,
            "digest": digest.code_digest(name, folder=folder),
            "versions": provenance.versions(digest.packages(name, folder=folder)),
        }
        path = cache / self.machine / f"{name}.{size}.jsonl"
        self.handed_on = folder / HANDED_ON / self.machine / path.name
        if self.handed_on.is_file() and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.handed_on, path)
        self.journal = Journal(path, header)

    def todo(self) -> list[int]:
        """Numbers of the steps that are not done."""
        return [n for n, key in enumerate(self.keys) if key not in self.journal.done]

    def recorded(self, root: Path) -> bool:
        """Whether this machine has a whole record of this code, size and versions."""
        path = record_path(self.name, self.machine, root)
        if not path.is_file():
            return False
        there, now = load(path), self.journal.header
        made = there.provenance
        return (
            (there.size, there.steps, made["digest"])
            == (self.size, None, now["digest"])
        ) and made["versions"] == now["versions"]

    def larger(self, root: Path) -> str | None:
        """The size of this machine's record, if it is above this run's."""
        path = record_path(self.name, self.machine, root)
        there = load(path).size if path.is_file() else self.size
        return there if SIZES.index(there) > SIZES.index(self.size) else None

    @property
    def done(self) -> int:
        return len(self.steps) - len(self.todo())

    def expected(self, todo: Sequence[int]) -> float:
        """Seconds of these steps by the pace of those done.

        When none is: their cost where steps take turns, else 0.
        """
        known = [
            (self.journal.seconds[key], step.cost)
            for key, step in zip(self.keys, self.steps, strict=True)
            if key in self.journal.seconds
        ]
        pace = float(any(step.turn for step in self.steps))
        if known:
            seconds, cost = map(sum, zip(*known, strict=True))
            pace = seconds / cost
        return pace * sum(self.steps[index].cost for index in todo)

    def fits(self, index: int) -> bool:
        """Whether the step can be begun: it should end in the time left."""
        left = self.end - self.clock()
        return left > 0 and self.expected([index]) <= left

    def record(self) -> Record:
        """The steps done, in the order of the steps."""
        done = [key for key in self.keys if key in self.journal.done]
        rows = [row for key in done for row in self.journal.done[key]]
        made = _record(self.name, self.module, self.size, rows, self.folder)
        if len(done) < len(self.steps):
            made.provenance["steps"] = [len(done), len(self.steps)]
        return made


def _by_turn(runs: Sequence[_Run]) -> Iterator[tuple[_Run, list[int]]]:
    """Runs with their steps to do: those of an earlier turn first, of all runs."""
    for turn in sorted({step.turn for run in runs for step in run.steps}):
        for run in runs:
            if todo := [n for n in run.todo() if run.steps[n].turn == turn]:
                yield run, todo


def _alone(run: _Run, todo: list[int]) -> Iterator[tuple[int, list[dict], float]]:
    """(index, rows, seconds) of each step, one after the other in this process."""
    for index in todo:
        if run.fits(index):
            begun = run.clock()
            rows = run.steps[index].run()
            yield index, rows, run.clock() - begun


def _work(run: _Run, todo: list[int]) -> None:
    """Journal each step as it ends; say how far the run is and what is left."""
    known = next(iter(run.journal.done.values()), [])
    if processes := provenance.processes(run.module):
        work = workers.share(
            run.name, run.size, run.folder, run.steps, todo, processes, run.fits
        )
    else:
        work = _alone(run, todo)
    with closing(work):
        for index, rows, seconds in work:
            step = run.steps[index]
            _checked(run.name, step, known, rows)
            run.journal.append(step.cell, rows, seconds)
            known = known or rows
            text = f"{run.name} {run.done}/{len(run.steps)} ({shown(step.cell)}) "
            text += duration(seconds)
            if left := run.todo():
                left = run.expected(left) / (processes or 1)
                text += f", about {duration(left)} left"
            _say(text)


def simulate(
    names: Sequence[str],
    size: str = "full",
    deadline: float = inf,
    folder: Path = EXPERIMENTS,
) -> list[tuple[float, str, dict]]:
    """(end, experiment, cell) of each step that `measure` would run from nothing.

    Nothing runs: a step takes a second for each unit of its cost.
    """
    found, now = [], 0.0
    with tempfile.TemporaryDirectory() as empty:
        runs = [
            _Run(
                name,
                load_experiment(name, folder),
                size,
                Path(empty),
                folder,
                deadline,
                lambda: now,
            )
            for name in names
        ]
    for run, todo in _by_turn(runs):
        for index in todo:
            if run.fits(index):
                now += run.steps[index].cost
                run.journal.done[run.keys[index]] = []
                run.journal.seconds[run.keys[index]] = run.steps[index].cost
                found.append((now, run.name, run.steps[index].cell))
    return found


def _keep(run: _Run, why: str) -> None:
    """Leave what is done as a partial record beside the journal, and say so."""
    text = f"{run.name}: {why}, {run.done} of {len(run.steps)} steps are kept"
    if run.done and run.size != "tiny":
        path = save(run.record(), run.cache)
        text += f"; partial record: {_place(path)}"
    _say(text)


def _place(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def _missing(names: list[str], size: str | None, cache: Path) -> None:
    options = f" --size {size}" if size else ""
    options += "" if cache == CACHE else f" --journal {cache}"
    command = f"{COMMAND} {' '.join(names)}{options}"
    _say(f"not finished: {', '.join(names)}; go on with: {command}")


def default_size(module: ModuleType) -> str:
    """Full on a GPU; on a CPU what the experiment says in CPU_SIZE, else small."""
    return "full" if provenance.gpu() else getattr(module, "CPU_SIZE", "small")


def _sized(modules: dict[str, ModuleType], size: str | None, named: bool) -> list[str]:
    """Experiments that have the size; a named one that has not is an error."""
    known = {name: getattr(module, "SIZES", SIZES) for name, module in modules.items()}
    without = [name for name in modules if size and size not in known[name]]
    for name in without:
        has = f"experiment {name!r} has no size {size!r}; it has: "
        has += ", ".join(known[name])
        if named:
            raise RecordError(has)
        _say(f"left out: {has}")
    return [name for name in modules if name not in without]


def _skipped(modules: dict[str, ModuleType], size: str | None) -> list[str]:
    """What needs a GPU where there is none."""
    if provenance.gpu() is not None:
        return []
    gpu = [n for n in modules if getattr(modules[n], "DEVICE", None) == "gpu"]
    skipped = list(modules) if size == "full" else gpu
    if skipped:
        cpu = [name for name in skipped if name not in gpu]
        how = f"; on this CPU: {COMMAND} {' '.join(cpu)}" if cpu else ""
        _say(f"no GPU here, skipped: {', '.join(skipped)}{how}")
    return skipped


def measure(
    names: Sequence[str] = (),
    size: str | None = "small",
    *,
    missing: bool = False,
    deadline: float | None = None,
    root: Path = RECORDS,
    cache: Path = CACHE,
    folder: Path = EXPERIMENTS,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Run experiments (all without names) and write their records.

    Without a size each has its `default_size`, and a record of a larger size stays.
    ``missing`` leaves out those whose record is up to date. ``deadline`` is in
    seconds from now: no step begins that would end later, by the pace of the steps
    done. Steps run in the order of their turns, those of one turn in the order of
    the names. A size `tiny` run is never recorded. Bad names or sizes raise
    RecordError before anything runs.
    """
    if size is not None and size not in SIZES:
        raise RecordError(f"unknown size {size!r}; known: {', '.join(SIZES)}")
    all_names = list(dict.fromkeys(names)) or experiments(folder)
    modules = {name: load_experiment(name, folder) for name in all_names}
    modules = {name: modules[name] for name in _sized(modules, size, bool(names))}
    outcome = Outcome(skipped=_skipped(modules, size))
    names = [name for name in modules if name not in outcome.skipped]
    end = inf if deadline is None else clock() + deadline
    runs = []
    for name in names:
        own = size or default_size(modules[name])
        run = _Run(name, modules[name], own, cache, folder, end, clock)
        if (larger := run.larger(root)) and not size:
            _say(
                f"{name}: keeps its record of size {larger!r}; --size {own} replaces it"
            )
        elif missing and run.recorded(root):
            _say(f"{name}: has its record")
        else:
            runs.append(run)
            if run.done:
                _say(
                    f"{name}: going on, {run.done} of {len(run.steps)} steps were done"
                )
    try:
        for run in runs:
            if not run.todo():  # stopped after its last step
                _finish(run, root, outcome)
        for run, todo in _by_turn(runs):
            _work(run, todo)
            if not run.todo():
                _finish(run, root, outcome)
    except (KeyboardInterrupt, SystemExit) as stop:
        _leave(runs, "stopped", size)
        if isinstance(stop, SystemExit):  # a step's own: its device is lost, say
            raise
        raise Interrupted from None
    outcome.unfinished = _leave(runs, "time is up", size)
    return outcome


def _leave(runs: Sequence[_Run], why: str, size: str | None) -> list[str]:
    """Keep what is done of runs that did not end; their names, and how to go on."""
    left = [run for run in runs if run.todo()]
    for run in left:
        _keep(run, why)
    names = [run.name for run in left]
    if left:
        _missing(names, size, left[0].cache)
    return names


def _finish(run: _Run, root: Path, outcome: Outcome) -> None:
    """Write the record; the journal has served."""
    record = run.record()
    outcome.records.append(record)
    if run.size == "tiny":
        _say(f"{run.name}: ran; size 'tiny' is never recorded")
    else:
        larger = run.larger(root)
        path = save(record, root)
        outcome.written.append(path)
        instead = f" in place of one of size {larger!r}" if larger else ""
        _say(f"{run.name}: wrote {record.machine}/{path.name}{instead}")
    run.journal.drop()
    run.handed_on.unlink(missing_ok=True)
    if run.cache == CACHE or run.size == "tiny":
        record_path(run.name, record.machine, run.cache).unlink(missing_ok=True)
    else:  # a named folder may be all that comes back from a lent machine
        save(record, run.cache)
