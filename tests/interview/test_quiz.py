"""Each answer key of the quiz is found out by running: the marked option holds, and
no other does."""

import ast
import importlib
import re
from math import sqrt

import pytest

from scripts.site.questions import interview
from scripts.site.reading.source import LANGUAGES

CHECKED = [(group, row) for group, row in interview.items() if row.get("check")]


def keys(group: str):
    return importlib.import_module(f"tests.interview.quiz_{group.replace('-', '_')}")


@pytest.mark.parametrize(("group", "row"), CHECKED, ids=[r["id"] for _, r in CHECKED])
def test_key(group, row):
    holds = getattr(keys(group), row["id"].replace("-", "_"))()
    assert all(type(value) is bool for value in holds.values())
    assert holds == {name: name == row["answer"] for name in row["options"]}


@pytest.mark.parametrize("group", interview.GROUPS)
def test_keys_and_items_belong_together(group, no_violations):
    path = interview.KEYS / f"quiz_{group.replace('-', '_')}.py"
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else []
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    found = {name for name in functions if not name.startswith("_")}
    wanted = {row["id"].replace("-", "_") for g, row in CHECKED if g == group}
    no_violations(
        f"{path.name}: {name} decides no item" for name in sorted(found - wanted)
    )
    no_violations(f"{path.name} has no {name}" for name in sorted(wanted - found))


def test_code_decides_each_item(no_violations):
    """The quiz's page says so."""
    unchecked = [row["id"] for _, row in interview.items() if not row.get("check")]
    no_violations(f"{name}: no check decides it" for name in unchecked)


ABSOLUTE = {
    "en": r"\b(all|none|exactly|nan|never|always|every)\b",
    "zh": r"所有|全部|完全|恰好|正好|NaN|从不|总是|永远|任何",
}
HEDGED = {
    "en": r"\b(about|nearly|almost|roughly|mostly|usually)\b",
    "zh": r"约|几乎|差不多|大多|通常|左右|接近",
}


def longest(texts: dict[str, str], language: str) -> list[str]:
    size = max(map(len, texts.values()))
    return [name for name, text in texts.items() if len(text) == size]


def careful(texts: dict[str, str], language: str) -> list[str]:
    """Drops what is absolute, prefers what is hedged, and of these the longest."""

    def match(pattern, wanted, among):
        found = {
            name: text
            for name, text in among.items()
            if bool(re.search(pattern[language], text, re.IGNORECASE)) is wanted
        }
        return found or among

    left = match(ABSOLUTE, False, texts)
    return longest(match(HEDGED, True, left), language)


def advantage(rows: list[dict], language: str, strategy) -> float:
    """How far a guesser who knows nothing scores beyond chance, in deviations."""
    score = chance = variance = 0.0
    for row in rows:
        texts = {name: o["text"][language] for name, o in row["options"].items()}
        taken = strategy(texts, language)
        score += (row["answer"] in taken) / len(taken)
        p = 1 / len(texts)
        chance, variance = chance + p, variance + p * (1 - p)
    return (score - chance) / sqrt(variance)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("strategy", "plants"),
    [
        (longest, {"en": ("a", "bb", "ccc"), "zh": ("甲", "乙乙", "丙丙丙")}),
        (
            careful,
            {"en": ("never", "always a", "about"), "zh": ("从不", "总是甲", "大约")},
        ),
    ],
)
def test_the_form_of_an_option_is_no_hint(strategy, plants, language):
    rows = [row for _, row in interview.items()]
    assert advantage(rows, language, strategy) < 1.64  # one guesser in twenty
    options = {name: {"text": {language: name}} for name in plants[language]}
    planted = [{"options": options, "answer": plants[language][2]}] * 20
    assert advantage(planted, language, strategy) > 5
