"""Everything generated and committed: .out files, lab notebooks, facts, figures,
diagrams.

Each has a digest of what it was made from, and one of what it holds: stale is what has
other inputs now, edited what is not as it was written. Rendering needs torch and
matplotlib; facts, and finding that nothing is stale, need neither.
"""

import hashlib
import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from scripts.errors import UserError
from scripts.measure import fact_files as files
from scripts.measure import figures, records
from scripts.measure.records import write_whole
from scripts.site.data import facts
from scripts.site.notebooks import lab_source
from scripts.site.pictures import diagram
from scripts.site.reading import generated, outputs
from scripts.site.reading.source import LANGUAGES, ROOT, last_changed

SOURCES = ("docs", "scripts", "snippets")
KNOWN = ROOT / ".cache" / "rendered"  # the stamps of files of which none is stale


class RenderError(UserError):
    """Something stale that cannot be rendered here. One line."""


@dataclass(frozen=True)
class Job:
    """One generated file or pair of files."""

    files: tuple[Path, ...]
    inputs: str  # the digest of what they are made from
    run: Callable[[], object]
    plain: bool = False  # needs neither torch nor matplotlib

    @property
    def name(self) -> str:
        return generated.name(self.files[0])


def jobs() -> list[Job]:
    """Everything that can be rendered, in the order it has to be."""
    found = [
        Job((out,), outputs.digest(out), _call(outputs.write, out))
        for out in outputs.files()
    ]
    for lab in lab_source.sources():
        paths = tuple(lab_source.executed_path(lab, each) for each in LANGUAGES)
        run = _call(lab_source.execute, lab)
        found.append(Job(paths, lab_source.digest(lab), run))
    used = facts.used()
    for experiment in records.experiments():
        for record in records.find(experiment):
            found += _of_record(record, used.get(experiment, ()))
    for name in diagram.names():
        for language in LANGUAGES:
            path = diagram.path(name, language)
            draw = _call(diagram.draw, name, language)
            found.append(Job((path,), diagram.digest(name), draw))
    return found


def _of_record(record: records.Record, used: Iterable[str]) -> list[Job]:
    """Its facts as a file, and its figure in both languages."""
    facts = records.load_experiment(record.experiment).facts(record)
    path = files.path(record.experiment, record.machine)
    text = files.text(record, facts, used)
    inputs = hashlib.sha256(text.encode()).hexdigest()[:16]
    write = _call(write_whole, path, text)
    found = [Job((path,), inputs, write, plain=True)]
    for language in LANGUAGES:
        path = figures.figure_path(record.experiment, record.machine, language)
        inputs = figures.figure_digest(record, language, facts)
        found.append(Job((path,), inputs, _call(figures.draw, record, language)))
    return found


def _call(function, *arguments):
    return lambda: function(*arguments)


def stale() -> list[str]:
    """The names of what is older than what it was made from, or was edited."""
    return [job.name for job in _stale(jobs(), edited=True)]


def _stale(found: list[Job], edited: bool) -> list[Job]:
    known = generated.listed()
    return [
        job
        for job in found
        if any(generated.stale(path, job.inputs, known) for path in job.files)
        or (edited and generated.edited(job.files, known))
    ]


def stale_only(mend: bool = False) -> int:
    """Render what is stale, and to ``mend`` what was edited; how many jobs ran."""
    return _run(_stale(jobs(), edited=mend))


def changed_only() -> int:
    """As ``stale_only``; not a look where no file has changed since the last one."""
    if KNOWN.is_file() and KNOWN.read_text(encoding="utf-8") == _stamps():
        return 0
    done = stale_only()
    KNOWN.parent.mkdir(exist_ok=True)
    write_whole(KNOWN, _stamps())
    return done


def _stamps() -> str:
    """When each file that is drawn, or drawn from, was last changed: a digest."""
    found = (path for name in SOURCES for path in (ROOT / name).rglob("*"))
    kept = (path for path in found if path.is_file() and path.suffix != ".pyc")
    return hashlib.sha256(repr(last_changed(kept)).encode()).hexdigest()


def everything() -> int:
    """Render all, stale or not."""
    return _run(jobs())


def _run(todo: list[Job]) -> int:
    heavy = [job.name for job in todo if not job.plain]
    if heavy and not importlib.util.find_spec("torch"):
        names = ", ".join(heavy[:3]) + (" …" if heavy[3:] else "")
        raise RenderError(f"{len(heavy)} stale ({names}); rendering needs: make render")
    for number, job in enumerate(todo, 1):
        print(f"render {number}/{len(todo)} {job.name}", flush=True)
        job.run()
        generated.keep(job.files, job.inputs)
    return len(todo)
