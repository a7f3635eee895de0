"""The names a page may use between [[ ]]: facts, figures, designs, citations, lists.

`[[ facts.norm_speed_cpu.noise ]]`  a number of a record, formatted once
`[[ figures.norm_speed_cpu ]]`      the figure, one for each machine with a record
`[[ designs.norm_speed_cpu ]]`      its design, folded: question, arms, controls, grid
`[[ diagrams.decoder_block ]]`      a drawing that explains
`[[ explore.numbers ]]`             a live figure
`[[ lists.glossary ]]`              what a page shows of docs/data
`[[ bets.gradient ]]`               two recorded runs to bet on
`[[ playground.screen ]]`           training runs in the reader's browser
`[[ claims.attention_logits ]]`     the ledger's rows of a topic
`[[ atlas.table ]]`                the model atlas's table and blocks
`[[ interview.rms_norm ]]`          the interview questions of a group, quiz, sheet
`[[ mock.interview ]]`              the mock interview and its questions
`[[ cite.zhang2019rms ]]`           a citation; its entry goes to the page's list

An unknown name fails the build. Nothing here needs torch or matplotlib.
"""

import html
import re

from scripts.measure import figures, svg
from scripts.site import atlas
from scripts.site.data import claims, designs, reference_lists
from scripts.site.data.facts import (
    NAME,
    Names,
    cite,
    design,
    designed,
    facts,
    recorded,
    words,
)
from scripts.site.pictures import diagram, explore, gradient_bet, playground
from scripts.site.questions import interview_pages, mock
from scripts.site.reading.files import SourceError, read_text, where

JINJA = re.compile(r"\[\[.*?(?:\]\]|$)|\[%.*?(?:%\]|$)|\[=#", re.MULTILINE)


def check_names(markdown: str) -> None:
    """Raise SourceError for the first thing between [[ ]] that is no known name."""
    for match in JINJA.finditer(markdown):
        if not NAME.fullmatch(match[0]):
            line = markdown.count("\n", 0, match.start()) + 1
            raise SourceError(f"line {line}: {match[0][:40]!r} is not [[ a name ]]")
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
            "bets": lambda: Names("bet", dict.fromkeys(gradient_bet.NAMES)),
            "playground": lambda: Names("playground", dict.fromkeys(playground.NAMES)),
            "lists": lambda: Names("list", dict.fromkeys(reference_lists.NAMES)),
            "claims": lambda: Names("list of claims", dict.fromkeys(claims.names())),
            "atlas": lambda: Names("part of the atlas", dict.fromkeys(atlas.NAMES)),
            "interview": lambda: Names("list", dict.fromkeys(interview_pages.names())),
            "mock": lambda: Names("list", dict.fromkeys(mock.NAMES)),
        }
        if kind not in roots or not rest:
            raise SourceError(f"unknown name [[ {match['name']} ]]")
        value = roots[kind]()
        for step in rest:
            if not isinstance(value, dict):
                raise SourceError(f"unknown name [[ {match['name']} ]]")
            value = value[step]
        if isinstance(value, dict):
            raise SourceError(f"[[ {match['name']} ]] is a group of names, not one")


def check_drawn(language: str) -> None:
    """Raise SourceError for the first figure or diagram that is not there."""
    wanted = [
        *(
            figures.figure_path(n, r.machine, language)
            for n in recorded()
            for r in recorded()[n]
        ),
        *(diagram.path(name, language) for name in diagram.names()),
    ]
    for path in wanted:
        if not path.is_file():
            raise SourceError(f"no figure {where(path)}; run: make render")


def figure(name: str, record, language: str, labels: dict) -> str:
    """One figure as HTML: inline SVG, caption, text alternative, link to the record."""
    path = figures.figure_path(name, record.machine, language)
    picture = svg.inline(read_text(path))
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
    picture = svg.inline(read_text(path))
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


class Rooted(Names):
    """What ``make`` writes in the page's language, with the way to the site's root."""

    def __init__(self, kind, language, page_root, make):
        super().__init__(kind, {})
        self._language, self._root, self._make = language, page_root, make

    def __missing__(self, name):
        return self._make(name, self._language, self._root())


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
    env.variables["bets"] = Rooted("bet", language, page_root, gradient_bet.make)
    env.variables["playground"] = Rooted(
        "playground", language, page_root, playground.make
    )
    env.variables["lists"] = Lists(language, reference_lists.make)
    env.variables["claims"] = Lists(language, claims.make)
    env.variables["atlas"] = Lists(language, atlas.make)
    env.variables["interview"] = Lists(language, interview_pages.make)
    env.variables["mock"] = Lists(language, mock.make)
    env.variables["cite"] = cite()
