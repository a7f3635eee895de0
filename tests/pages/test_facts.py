"""Every name between [[ ]] resolves; every record is whole, fresh and drawn."""

import re
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

from scripts.measure import digest, figures, records
from scripts.site import atlas, render
from scripts.site.data import citations, claims, facts, reference_lists
from scripts.site.pictures import diagram, explore, gradient_bet, playground
from scripts.site.questions import interview_pages, mock
from scripts.site.reading.source import ROOT, without_fences

NAME = re.compile(r"\[\[(.*?)\]\]")
KINDS = "figures|designs|diagrams|explore|playground|lists|claims|interview|bets"
KINDS += "|mock|atlas|cite"
ALONE = ("figures", "designs", "diagrams", "explore", "playground")
PARTS = re.compile(rf" (facts\.\w+\.\w+|(?:{KINDS})\.\w+) ")
EXPERIMENTS = records.experiments()
RECORDS = sorted(p for p in records.RECORDS.rglob("*") if p.is_file())
LANGUAGES = ("zh", "en")


def violations(text: str, known: dict[str, set[str]]) -> list[str]:
    """'line: what' for each name that nothing defines."""
    found = []
    for number, line in enumerate(without_fences(text).splitlines(), 1):
        for match in NAME.finditer(line):
            parts = PARTS.fullmatch(match[1])
            if not parts:
                found.append(f"{number}: {match[0]} is no fact, figure or citation")
            elif (name := parts[1].partition(".")[2]) not in known[
                kind := parts[1].partition(".")[0]
            ]:
                found.append(f"{number}: {kind} {name!r} is unknown")
            elif kind in ALONE and line.strip() != match[0]:
                found.append(f"{number}: {match[0]} is not alone on its line")
    return found


@cache
def known() -> dict[str, set[str]]:
    """All names that pages may use."""
    of_facts = facts.facts()
    return {
        "facts": {f"{name}.{fact}" for name in of_facts for fact in of_facts[name]},
        "figures": {name for name in EXPERIMENTS if records.find(name)},
        "designs": set(facts.designed()),
        "diagrams": set(diagram.names()),
        "explore": set(explore.names()),
        "lists": set(reference_lists.NAMES),
        "claims": set(claims.names()),
        "atlas": set(atlas.NAMES),
        "interview": set(interview_pages.names()),
        "bets": set(gradient_bet.NAMES),
        "playground": set(playground.NAMES),
        "mock": set(mock.NAMES),
        "cite": set(citations.references()),
    }


def texts(words: dict, prefix: str = "") -> dict[str, str]:
    """The words of a figure, groups of them flattened: {"panel.left": text}."""
    found = {}
    for key, value in words.items():
        inner = isinstance(value, dict)
        found |= texts(value, f"{prefix}{key}.") if inner else {prefix + key: value}
    return found


def placeholders(words: dict) -> dict[str, set[str]]:
    """The facts that each text of a figure refers to."""
    parse = Formatter().parse
    return {
        key: {name for _, name, _, _ in parse(text) if name}
        for key, text in texts(words).items()
    }


def test_pages(page, no_violations):
    no_violations(f"{page.where}:{v}" for v in violations(page.text, known()))


def problems(path: Path) -> list[str]:
    """What is wrong with one record or with the figures drawn from it."""
    try:
        record = records.load(path)
        experiment = records.load_experiment(record.experiment)
    except records.RecordError as error:
        return [str(error)]
    found = []
    if record.machine != path.parent.name:
        found.append(f"holds machine {record.machine!r}")
    if record.size == "tiny":
        found.append("a tiny run is never recorded")
    if digest.is_stale(record):
        found.append("stale: the measured code has changed since")
    values = set(experiment.facts(record))
    for lang in LANGUAGES:
        figure = figures.figure_path(record.experiment, record.machine, lang)
        if not figure.is_file():
            found.append(f"{figure.name} is missing")
        used = set().union(*placeholders(experiment.WORDS[lang]).values())
        found += [f"{lang} words use {name!r}" for name in sorted(used - values)]
    return [f"{path.relative_to(ROOT)}: {problem}" for problem in found]


@pytest.mark.parametrize("path", RECORDS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_record(path, no_violations):
    no_violations(problems(path))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment_speaks_both_languages(name):
    words = records.load_experiment(name).WORDS
    assert set(words) == set(LANGUAGES)
    assert words["en"].keys() >= {"title", "caption", "alt"}
    assert placeholders(words["zh"]) == placeholders(words["en"])


def test_what_is_rendered_is_up_to_date(no_violations):
    """Figures, outputs of snippets, executed labs."""
    no_violations(
        f"{what} is stale or edited; run: make render" for what in render.stale()
    )


def test_no_figure_without_its_record(no_violations):
    wanted = {
        figures.figure_path(path.stem, path.parent.name, lang)
        for path in RECORDS
        for lang in LANGUAGES
    }
    drawn = set(figures.FIGURES.glob("*/*.svg")) - set(diagram.FIGURES.glob("*.svg"))
    no_violations(
        f"{p.relative_to(ROOT)} has no record" for p in sorted(drawn - wanted)
    )


KNOWN = {
    "cite": {"who2020what"},
    "diagrams": {"axes"},
    "explore": {"numbers"},
    "facts": {"speed.ratio"},
    "figures": {"speed"},
}
GOOD = "[[ facts.speed.ratio ]] times [[ cite.who2020what ]]\n\n[[ figures.speed ]]\n"


def test_good():
    assert violations(GOOD, KNOWN) == []
    words = {"alt": "{ratio} times, {{braces}}", "panel": {"left": "of {a} and {b}"}}
    assert placeholders(words) == {"alt": {"ratio"}, "panel.left": {"a", "b"}}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("speed.ratio", "speed.ratoi", "1: facts 'speed.ratoi' is unknown"),
        ("speed.ratio", "sped.ratio", "1: facts 'sped.ratio' is unknown"),
        ("facts.speed.ratio", "speed.ratio", "1: [[ speed.ratio ]] is no fact"),
        (" facts.speed.ratio ", "facts.speed.ratio", "1: [[facts.speed.ratio]] is no"),
        ("who2020what", "who2020why", "1: cite 'who2020why' is unknown"),
        ("figures.speed", "figures.sped", "3: figures 'sped' is unknown"),
        ("figures.speed", "diagrams.axe", "3: diagrams 'axe' is unknown"),
        ("figures.speed", "explore.cells", "3: explore 'cells' is unknown"),
        ("[[ figures", "See [[ figures", "3: [[ figures.speed ]] is not alone"),
        ("times", "[[1, 2]]", "1: [[1, 2]] is no fact"),
    ],
)
def test_bad(old, new, says):
    found = violations(GOOD.replace(old, new, 1), KNOWN)
    assert any(v.startswith(says) for v in found), found
