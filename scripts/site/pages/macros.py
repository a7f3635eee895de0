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


def _known(kind: str, names):
    return lambda: Names(kind, dict.fromkeys(names()))


KNOWN = {  # kind -> its names; a fact's and a citation's with what they say
    "facts": lambda: facts(),
    "cite": lambda: cite(),
    "figures": _known("figure", lambda: recorded()),
    "designs": _known("design", lambda: designed()),
    "diagrams": _known("diagram", lambda: diagram.names()),
    "explore": _known("live figure", lambda: explore.names()),
    "bets": _known("bet", lambda: gradient_bet.NAMES),
    "playground": _known("playground", lambda: playground.NAMES),
    "lists": _known("list", lambda: reference_lists.NAMES),
    "claims": _known("list of claims", lambda: claims.names()),
    "atlas": _known("part of the atlas", lambda: atlas.NAMES),
    "interview": _known("list of questions", lambda: interview_pages.names()),
    "mock": _known("interview", lambda: mock.NAMES),
}


def check_names(markdown: str) -> None:
    """Raise SourceError for the first thing between [[ ]] that is no known name."""
    for match in JINJA.finditer(markdown):
        if not NAME.fullmatch(match[0]):
            line = markdown.count("\n", 0, match.start()) + 1
            raise SourceError(f"line {line}: {match[0][:40]!r} is not [[ a name ]]")
    for match in NAME.finditer(markdown):
        kind, *rest = match["name"].split(".")
        if kind not in KNOWN or not rest:
            raise SourceError(f"unknown name [[ {match['name']} ]]")
        value = KNOWN[kind]()
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
    if name not in diagram.names():
        raise SourceError(f"unknown diagram {name!r}")
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


class Made(Names):
    """What ``make`` writes for a name, when a page asks for it."""

    def __init__(self, kind, make):
        super().__init__(kind, {})
        self._make = make

    def __missing__(self, name):
        return self._make(name)


def all_machines(name: str, language: str, labels: dict, root: str) -> str:
    """The figure of each machine with a record; ``root`` is the way to the site's."""
    if name not in recorded():
        raise SourceError(f"unknown figure {name!r}: no experiment with a record")
    parts = [figure(name, record, language, labels) for record in recorded()[name]]
    text = "\n\n".join(parts).replace("{root}", root)
    if len(parts) == 1:
        return text
    return f'<div class="machines">\n\n{text}\n\n</div>'


def makers(language: str, labels: dict, page_root) -> dict:
    """kind -> what writes one; ``page_root()`` is the way to the site's root."""
    return {
        "figures": lambda name: all_machines(name, language, labels, page_root()),
        "designs": lambda name: design(name, language, designs.block),
        "diagrams": lambda name: drawing(name, language, labels),
        "explore": lambda name: explore.page(name, language, page_root()),
        "bets": lambda name: gradient_bet.make(name, language, page_root()),
        "playground": lambda name: playground.make(name, language, page_root()),
        "lists": lambda name: reference_lists.make(name, language),
        "claims": lambda name: claims.make(name, language),
        "atlas": lambda name: atlas.make(name, language),
        "interview": lambda name: interview_pages.make(name, language),
        "mock": lambda name: mock.make(name, language),
    }


def define_env(env):
    """Entry point of mkdocs-macros."""

    def page_root():
        return "../" * env.page.url.count("/")

    labels = env.conf["extra"]["words"]
    made = makers(env.conf["theme"]["language"], labels, page_root)
    for kind, make in made.items():  # an update() would make plain dicts of them
        env.variables[kind] = Made(kind, make)
    env.variables["facts"] = facts()
    env.variables["cite"] = cite()
