"""Facts: numbers of records, formatted once by the `facts` of their experiment.

A text names one as ``[[ facts.<experiment>.<name> ]]`` and a source as
``[[ cite.<key> ]]``; a name that does not exist is an error.
"""

import re
from collections.abc import Callable
from functools import cache

from scripts.measure import look, records
from scripts.site.data import citations
from scripts.site.reading.source import SourceError, last_changed

NAME = re.compile(r"\[\[ *(?P<name>\w[\w.]*) *\]\]")


class Names(dict):
    """A dict whose items read as attributes and whose misses name the known keys."""

    def __init__(self, kind: str, items):
        super().__init__(items)
        self._kind = kind

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __missing__(self, name):
        known = ", ".join(sorted(self)) or "none"
        raise SourceError(f"unknown {self._kind} {name!r}; known: {known}")


@cache
def _stamps() -> tuple:
    """What the records' folder holds; a changed file is a changed stamp."""
    return last_changed(records.RECORDS.glob("*/*.json"))


def read_again() -> None:
    """Look for changed records; each build starts with this."""
    _stamps.cache_clear()


@cache
def _recorded(stamps) -> dict:
    found = {name: records.find(name) for name in records.experiments()}
    return {name: recorded for name, recorded in found.items() if recorded}


def recorded() -> dict:
    """Experiments that have records: name -> records, in the order of find."""
    return _recorded(_stamps())


@cache
def _designed(stamps) -> list[str]:
    names = _recorded(stamps)
    return [n for n in names if hasattr(records.load_experiment(n), "DESIGN")]


def designed() -> list[str]:
    """Experiments with a record that declare a DESIGN."""
    return _designed(_stamps())


@cache
def _facts(name, machine, stamps) -> Names:
    record = next(r for r in _recorded(stamps)[name] if r.machine == machine)
    found = records.load_experiment(name).facts(record)
    return Names(f"fact of {name}", found)


@cache
def _all_facts(stamps) -> Names:
    found = {
        name: _facts(name, of[0].machine, stamps)
        for name, of in _recorded(stamps).items()
        if of[0].steps is None  # complete ones come first: no other leads a page
    }
    return Names("experiment with a complete record", found)


def facts() -> Names:
    """Facts of every experiment that has a complete record, from the first of them."""
    return _all_facts(_stamps())


def words(record, language: str) -> dict:
    """The words of an experiment's figure, filled with the record's facts."""
    texts = records.load_experiment(record.experiment).WORDS[language]
    return look.fill(texts, _facts(record.experiment, record.machine, _stamps()))


def cite() -> Names:
    return Names("citation", citations.references())


def design(name: str, language: str, form: Callable) -> str:
    """The design of an experiment, in a form of designs.py."""
    if name not in designed():
        known = ", ".join(designed()) or "none"
        raise SourceError(f"unknown design {name!r}; known: {known}")
    record = recorded()[name][0]
    return form(record, language, _facts(name, record.machine, _stamps()))


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
