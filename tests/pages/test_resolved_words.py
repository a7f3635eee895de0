"""A word for an outcome says what the rows say: resolved, not resolved, and how far.

'Not resolved' is said of a difference that the rows do not resolve, and so is 'would
most likely have been detected' of the bound of one. Where an effect beside it is
smaller than that bound, the bound is printed, or that such an effect could hide.
"""

import re

import pytest

from scripts.measure import records
from scripts.measure.fact_formatting import Found
from scripts.measure.spread import Paired
from scripts.site.reading.source import ROOT

FACT = re.compile(r"\[\[ facts\.(\w+)\.(\w+) \]\]")
NOT = re.compile(r"\bnot \[?resolv|\bno [^.:]*difference[^.:]*resolved|看不出|分辨不出")
YES = re.compile(r"[Oo]nly|(?<!not )(?<!not \[)resolved|分辨得出|刚够")
HIDES = re.compile(r"could hide|测不出来")
DETECTED = re.compile(r"most likely have been detected|最小可测")
SENTENCE = re.compile(r"(?<=[a-z\])])[.;](?= )|[。；]")


@pytest.fixture(scope="module")
def pairs():
    """{(experiment, fact): the paired difference} of the records that lead."""
    found: dict[tuple[str, str], Paired] = {}
    patch = pytest.MonkeyPatch()
    paired = Found.paired

    def noted(self, name, ours, theirs, digits=3, end=""):
        if made := paired(self, name, ours, theirs, digits, end):
            found[experiment, f"{name}{end}"] = made
            found[experiment, f"{name}_bound"] = made
        return made

    patch.setattr(Found, "paired", noted)
    for experiment in records.experiments():
        if kept := records.find(experiment):
            records.load_experiment(experiment).facts(kept[0])
    patch.undo()
    return found


def violations(text: str, pairs: dict) -> list[str]:
    """'line: what is wrong with a word for an outcome there'."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("|"):
            continue
        for said in SENTENCE.split(line):
            facts = [fact for fact in FACT.findall(said) if fact in pairs]
            named = [name for _, name in facts]
            if DETECTED.search(said):
                found += [
                    f"{number}: the bound of a resolved difference, {name}"
                    for fact, name in zip(facts, named, strict=True)
                    if name.endswith("_bound") and pairs[fact].resolved
                ]
            if NOT.search(said) and not YES.search(NOT.sub("", said)):
                only = [fact for fact in facts if not fact[1].endswith("_bound")]
                if len(only) == 1 and pairs[only[0]].resolved:
                    found.append(f"{number}: resolved by its rows, {only[0][1]}")
        if NOT.search(line) and not HIDES.search(line):
            facts = [fact for fact in FACT.findall(line) if fact in pairs]
            least = min(
                (abs(pairs[f].mean) for f in facts if pairs[f].resolved), default=None
            )
            for experiment, name in facts:
                each = pairs[experiment, name]
                bound = name.removesuffix("_paired").removesuffix("_bound") + "_bound"
                hides = least is not None and least < each.resolvable
                if hides and not each.resolved and f".{bound} ]]" not in line:
                    found.append(f"{number}: an effect below the bound of {name}")
    return found


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_pages(lang, pairs, no_violations):
    folder = ROOT / "docs" / lang / "pages"
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(folder).as_posix()
        no_violations(f"{lang} {name}:{each}" for each in violations(text, pairs))


PLANTED = {
    ("toy", "large_paired"): Paired(0.5, 0.01, 5),
    ("toy", "large_bound"): Paired(0.5, 0.01, 5),
    ("toy", "small_paired"): Paired(0.01, 0.1, 5),
    ("toy", "small_bound"): Paired(0.01, 0.1, 5),
    ("toy", "tiny"): Paired(0.02, 0.001, 5),
}
LARGE, SMALL, BOUND, TINY = (
    f"[[ facts.toy.{name} ]]"
    for name in ("large_paired", "small_paired", "small_bound", "tiny")
)


@pytest.mark.parametrize(
    "text",
    [
        f"At the best rate, {LARGE}, it is not resolved.",
        f"差别是 {LARGE}，看不出差别。",
        "No difference is resolved; [[ facts.toy.large_bound ]] would most likely have "
        "been detected.",  # as a page said of a half of the layers
        f"The first gains {TINY}; the second, {SMALL}, is not resolved.",
    ],
)
def test_bad(text):
    assert len(violations(text, PLANTED)) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"It is {LARGE}, and the other, {SMALL}, is not resolved.",
        f"It is {LARGE}, resolved only just; at a lower rate it is not resolved.",
        f"The first gains {TINY}; the second, {SMALL}, is not resolved ({BOUND} would "
        "most likely have been detected).",
        f"| not resolved | {LARGE} |",
    ],
)
def test_good(text):
    assert violations(text, PLANTED) == []
