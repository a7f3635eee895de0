"""Everything generated and committed: .out files, lab notebooks, figures,
diagrams.

Each has a digest of what it was made from, and one of what it holds: stale is what has
other inputs now, edited what is not as it was written. Rendering needs torch and
matplotlib; finding that nothing is stale needs neither.
"""

import hashlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scripts.errors import UserError
from scripts.measure import look, records
from scripts.measure.records import write_whole
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

    name: str
    files: tuple[Path, ...]
    stale: bool
    run: Callable[[], object]

    @property
    def edited(self) -> bool:
        return bool(generated.edited(self.files))


def jobs() -> list[Job]:
    """Everything that can be rendered, in the order it has to be."""
    stale_outputs, stale_labs = outputs.stale(), lab_source.stale()
    found = [
        Job(
            f"snippets/{outputs.name(out)}",
            (out,),
            out in stale_outputs,
            _call(outputs.write, out),
        )
        for out in outputs.files()
    ]
    found += [
        Job(
            f"docs/labs/{lab.name}",
            tuple(lab_source.executed_path(lab, language) for language in LANGUAGES),
            lab in stale_labs,
            _call(lab_source.execute, lab),
        )
        for lab in lab_source.sources()
    ]
    for experiment in records.experiments():
        for record in records.find(experiment):
            for language in LANGUAGES:
                path = look.figure_path(experiment, record.machine, language)
                fresh = look.figure_digest(record, language)
                stale = not path.is_file() or look.read_digest(path) != fresh
                draw = _call(look.draw, record, language)
                found.append(Job(generated.name(path), (path,), stale, draw))
    for name in diagram.names():
        for language in LANGUAGES:
            path = diagram.path(name, language)
            stale = diagram.is_stale(name, language)
            draw = _call(diagram.draw, name, language)
            found.append(Job(generated.name(path), (path,), stale, draw))
    return found


def _call(function, *arguments):
    return lambda: function(*arguments)


def stale() -> list[str]:
    """The names of what is older than what it was made from, or was edited."""
    return [job.name for job in jobs() if job.stale or job.edited]


def stale_only(mend: bool = False) -> int:
    """Render what is stale, and to ``mend`` what was edited; how many jobs ran."""
    return _run([job for job in jobs() if job.stale or (mend and job.edited)])


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
    if todo and not importlib.util.find_spec("torch"):
        names = ", ".join(job.name for job in todo[:3]) + (" …" if todo[3:] else "")
        raise RenderError(f"{len(todo)} stale ({names}); rendering needs: make render")
    for number, job in enumerate(todo, 1):
        print(f"render {number}/{len(todo)} {job.name}", flush=True)
        job.run()
        generated.keep(job.files)
    return len(todo)
