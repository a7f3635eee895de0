"""Facts: numbers of records, formatted once and committed in docs/facts.

A text names one as ``[[ facts.<experiment>.<name> ]]`` and a source as
``[[ cite.<key> ]]``; a name that does not exist is an error.
"""

import json
import re
from collections.abc import Callable
from functools import cache

from scripts.measure import fact_files as files
from scripts.measure import records
from scripts.site.data import citations
from scripts.site.reading.files import read_text, where
from scripts.site.reading.source import SourceError, last_changed

NAME = re.compile(r"\[\[ *(?P<name>\w[\w.]*) *\]\]")
USED = re.compile(r"\[\[ *facts\.(\w+)\.(\w+) *\]\]")
SCREENS = {  # named by the home page's bet and by the playground, in Python
    "running_maximum_loss": (
        "no_layers_opening",
        "opening_layers",
        "opening_rate",
        "post_opening",
        "pre_opening",
        "steps",
    ),
}


class Names(dict):
    """A dict whose items read as attributes and whose misses name the known keys."""

    def __init__(self, kind: str, items):
        super().__init__(items)
        self._kind = kind

    def __getattribute__(self, name):
        if not name.startswith("_") and name in self:  # a fact may be called "copy"
            return self[name]
        return super().__getattribute__(name)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __missing__(self, name):
        known = ", ".join(sorted(self)) or "none"
        raise SourceError(f"unknown {self._kind} {name!r}; known: {known}")


@cache
def _stamps() -> tuple:
    """What the folders of records and facts hold; a changed file is a changed stamp."""
    folders = (records.RECORDS, files.FOLDER)
    return last_changed(path for folder in folders for path in folder.glob("*/*.json"))


def read_again() -> None:
    """Look for changed records and facts; each build starts with this."""
    _stamps.cache_clear()


@cache
def _recorded(stamps) -> dict:
    found = {name: records.find(name) for name in records.experiments()}
    return {name: recorded for name, recorded in found.items() if recorded}


def recorded() -> dict:
    """Experiments that have records: name -> records, in the order of find."""
    return _recorded(_stamps())


@cache
def _file(name: str, machine: str, stamps) -> dict:
    path = files.path(name, machine)
    if not path.is_file():
        raise SourceError(f"no {where(path)}; run: make render")
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise SourceError(f"{where(path)}: damaged: {error}; git restores it") from None


def _of(record) -> dict:
    return _file(record.experiment, record.machine, _stamps())


@cache
def _all_facts(stamps) -> Names:
    found = {
        name: Names(f"fact of {name}", _file(name, of[0].machine, stamps)["facts"])
        for name, of in _recorded(stamps).items()
        if of[0].steps is None  # complete ones come first: no other leads a page
    }
    return Names("experiment with a complete record", found)


def facts() -> Names:
    """Facts of every experiment that has a complete record, from the first of them."""
    return _all_facts(_stamps())


def words(record, language: str) -> dict:
    """Caption and alternative text of a figure, filled with the record's facts."""
    return _of(record)["figure"][language]


def cite() -> Names:
    return Names("citation", citations.references())


def designed() -> list[str]:
    """Experiments with a record that declare a DESIGN."""
    return [name for name, found in recorded().items() if "design" in _of(found[0])]


def design(name: str, language: str, form: Callable) -> str:
    """The design of an experiment, in a form of designs.py."""
    if name not in designed():
        known = ", ".join(designed()) or "none"
        raise SourceError(f"unknown design {name!r}; known: {known}")
    return form(_of(recorded()[name][0])["design"][language], language)


def used() -> dict[str, set[str]]:
    """The facts that texts name: experiment -> names. What `render` writes down."""
    found: dict[str, set[str]] = {}
    docs = records.ROOT / "docs"
    for kind in ("*.md", "*.yml"):
        for path in docs.rglob(kind):
            for experiment, name in USED.findall(read_text(path)):
                found.setdefault(experiment, set()).add(name)
    for experiment, names in SCREENS.items():
        found.setdefault(experiment, set()).update(names)
    return found


def text(name: str) -> str:
    """What ``facts.<experiment>.<name>`` says, or ``cite.<key>`` as a link."""
    kind, _, rest = name.partition(".")
    if kind == "cite" and rest:
        reference = cite()[rest]
        return f"([{reference.authors}, {reference.year}]({reference.url}))"
    if kind != "facts" or not rest:
        raise SourceError(f"unknown name [[ {name} ]]")
    value = facts()
    for step in rest.split("."):
        value = value[step]
    return str(value)
