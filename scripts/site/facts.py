"""The names a page may use between [[ ]]: facts, figures, designs, citations, lists.

`[[ facts.norm_speed_cpu.noise ]]`  a number of a record, formatted once
`[[ figures.norm_speed_cpu ]]`      the figure, one for each machine with a record
`[[ designs.norm_speed_cpu ]]`      its design, folded: question, arms, controls, grid
`[[ diagrams.decoder_block ]]`      a drawing that explains
`[[ explore.numbers ]]`             a live figure
`[[ lists.glossary ]]`              what a page shows of docs/data
`[[ claims.attention_logits ]]`     the ledger's rows of a topic
`[[ atlas.table ]]`                the model atlas's table and blocks
`[[ interview.rms_norm ]]`          the interview questions of a group, quiz, sheet
`[[ mock.interview ]]`              the mock interview and its questions
`[[ cite.zhang2019rms ]]`           a citation; its entry goes to the page's list

An unknown name fails the build. Nothing here needs torch or matplotlib.
"""

import html
import re
from collections.abc import Callable
from functools import cache

from scripts.measure import look, records
from scripts.site import (
    asked,
    atlas,
    citations,
    claims,
    designs,
    diagram,
    explore,
    lists,
    mock,
    svg,
)
from scripts.site.source import ROOT, SourceError, last_changed

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
    }
    return Names("experiment with a record", found)


def facts() -> Names:
    """Facts of every experiment that has a record, from its first machine's."""
    return _all_facts(_stamps())


def words(record, language: str) -> dict:
    """The words of an experiment's figure, filled with the record's facts."""
    texts = records.load_experiment(record.experiment).WORDS[language]
    return look.fill(texts, _facts(record.experiment, record.machine, _stamps()))


def cite() -> Names:
    return Names("citation", citations.references())


def design(name: str, language: str, form: Callable) -> str:
    """The design of an experiment, in a form of scripts/site/designs.py."""
    if name not in designed():
        known = ", ".join(designed()) or "none"
        raise SourceError(f"unknown design {name!r}; known: {known}")
    record = recorded()[name][0]
    return form(record, language, _facts(name, record.machine, _stamps()))


def check_names(markdown: str) -> None:
    """Raise SourceError for the first name between [[ ]] that does not exist."""
    for match in NAME.finditer(markdown):
        kind, *rest = match["name"].split(".")
        if kind == "figures" and rest[:1] and rest[0] in recorded():
            continue
        if kind == "designs" and rest[:1] and rest[0] in designed():
            continue
        roots = {
            "facts": facts,
            "cite": cite,
            "figures": lambda: Names("figure", {}),
            "designs": lambda: Names("design", dict.fromkeys(designed())),
            "diagrams": lambda: Names("diagram", dict.fromkeys(diagram.names())),
            "explore": lambda: Names("live figure", dict.fromkeys(explore.names())),
            "lists": lambda: Names("list", dict.fromkeys(lists.NAMES)),
            "claims": lambda: Names("list of claims", dict.fromkeys(claims.names())),
            "atlas": lambda: Names("part of the atlas", dict.fromkeys(atlas.NAMES)),
            "interview": lambda: Names("list", dict.fromkeys(asked.names())),
            "mock": lambda: Names("list", dict.fromkeys(mock.NAMES)),
        }
        if kind not in roots or not rest:
            raise SourceError(f"unknown name [[ {match['name']} ]]")
        value = roots[kind]()
        for step in rest:
            value = value[step]


def figure(name: str, record, language: str, labels: dict) -> str:
    """One figure as HTML: inline SVG, caption, text alternative, link to the record."""
    path = look.figure_path(name, record.machine, language)
    if not path.is_file():
        raise SourceError(f"no figure {path.relative_to(ROOT)}; run: make render")
    picture = svg.slim(path.read_text(encoding="utf-8"))
    filled = words(record, language)
    link = f"records/{record.machine}/{name}.json"
    return (
        f'<figure class="measured" data-search-exclude id="{name}-{record.machine}">\n'
        f"{svg.named(picture, filled['caption'])}\n"
        f"<figcaption>{html.escape(filled['caption'])} "
        f'<a href="{{root}}{link}">{labels["record"]}: {record.machine}</a>'
        "</figcaption>\n"
        f"<details><summary>{labels['alternative']}</summary>"
        f"<p>{html.escape(filled['alt'])}</p></details>\n"
        f"<details><summary>{labels['rerun']}</summary><p>{labels['rerun_how']}</p>"
        f"<p><code>make reproduce NAME={name}</code></p></details>\n"
        "</figure>"
    )


def drawing(name: str, language: str, labels: dict) -> str:
    """One diagram as HTML: inline SVG, caption, text alternative."""
    path = diagram.path(name, language)
    if not path.is_file():
        raise SourceError(f"no diagram {path.relative_to(ROOT)}; run: make render")
    picture = svg.slim(path.read_text(encoding="utf-8"))
    words = diagram.load(name).WORDS[language]
    return (
        f'<figure class="measured" data-search-exclude id="{name.replace("_", "-")}">\n'
        f"{svg.named(picture, words['caption'])}\n"
        f"<figcaption>{html.escape(words['caption'])}</figcaption>\n"
        f"<details><summary>{labels['alternative']}</summary>"
        f"<p>{html.escape(words['alt'])}</p></details>\n"
        "</figure>"
    )


class Diagrams(Names):
    """Diagrams of the page in hand, in its language."""

    def __init__(self, language, labels):
        super().__init__("diagram", {})
        self._language, self._labels = language, labels

    def __missing__(self, name):
        if name not in diagram.names():
            raise SourceError(f"unknown diagram {name!r}")
        return drawing(name, self._language, self._labels)


class Explore(Names):
    """Live figures of the page in hand, in its language."""

    def __init__(self, language, page_root):
        super().__init__("live figure", {})
        self._language, self._root = language, page_root

    def __missing__(self, name):
        return explore.page(name, self._language, self._root())


class Designs(Names):
    """Designs of experiments, with what their first record holds."""

    def __init__(self, language):
        super().__init__("design", {})
        self._language = language

    def __missing__(self, name):
        return design(name, self._language, designs.block)


class Lists(Names):
    """Lists written from docs/data, in the page's language."""

    def __init__(self, language, make):
        super().__init__("list", {})
        self._language, self._make = language, make

    def __missing__(self, name):
        return self._make(name, self._language)


class Figures(Names):
    """Figures of the page in hand; ``page_root`` is its way to the site's root."""

    def __init__(self, language, labels, page_root):
        super().__init__("figure", {})
        self._language, self._labels, self._root = language, labels, page_root

    def __missing__(self, name):
        if name not in recorded():
            raise SourceError(f"unknown figure {name!r}: no experiment with a record")
        parts = [
            figure(name, r, self._language, self._labels) for r in recorded()[name]
        ]
        text = "\n\n".join(parts).replace("{root}", self._root())
        if len(parts) == 1:
            return text
        return f'<div class="machines">\n\n{text}\n\n</div>'


def define_env(env):
    """Entry point of mkdocs-macros."""

    def page_root():
        return "../" * env.page.url.count("/")

    labels = env.conf["extra"]["words"]
    language = env.conf["theme"]["language"]
    env.variables["facts"] = facts()
    env.variables["figures"] = Figures(language, labels, page_root)
    env.variables["designs"] = Designs(language)
    env.variables["diagrams"] = Diagrams(language, labels)
    env.variables["explore"] = Explore(language, page_root)
    env.variables["lists"] = Lists(language, lists.make)
    env.variables["claims"] = Lists(language, claims.make)
    env.variables["atlas"] = Lists(language, atlas.make)
    env.variables["interview"] = Lists(language, asked.make)
    env.variables["mock"] = Lists(language, mock.make)
    env.variables["cite"] = cite()
