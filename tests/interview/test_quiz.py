"""Each answer key of the quiz is found out by running: the marked option holds, and
no other does."""

import ast
import importlib
from math import sqrt

import pytest

from scripts.site import interview
from scripts.site.source import LANGUAGES

CHECKED = [(group, row) for group, row in interview.items() if row.get("check")]


def keys(group: str):
    return importlib.import_module(f"tests.interview.quiz_{group.replace('-', '_')}")


@pytest.mark.parametrize(("group", "row"), CHECKED, ids=[r["id"] for _, r in CHECKED])
def test_key(group, row):
    holds = getattr(keys(group), row["id"].replace("-", "_"))()
    assert all(type(value) is bool for value in holds.values())
    assert holds == {name: name == row["answer"] for name in row["options"]}


@pytest.mark.parametrize("group", interview.GROUPS)
def test_keys_and_items_belong_together(group, obeyed):
    path = interview.KEYS / f"quiz_{group.replace('-', '_')}.py"
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else []
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    found = {name for name in functions if not name.startswith("_")}
    wanted = {row["id"].replace("-", "_") for g, row in CHECKED if g == group}
    obeyed(f"{path.name}: {name} decides no item" for name in sorted(found - wanted))
    obeyed(f"{path.name} has no {name}" for name in sorted(wanted - found))


def test_code_decides_each_item(obeyed):
    """The quiz's page says so."""
    unchecked = [row["id"] for _, row in interview.items() if not row.get("check")]
    obeyed(f"{name}: no check decides it" for name in unchecked)


def hint_of_length(rows: list[dict], language: str) -> float:
    """How far 'take the longest option' scores beyond chance, in deviations."""
    score = chance = variance = 0.0
    for row in rows:
        lengths = {k: len(v["text"][language]) for k, v in row["options"].items()}
        longest = [
            k for k, length in lengths.items() if length == max(lengths.values())
        ]
        score += (row["answer"] in longest) / len(longest)
        p = 1 / len(lengths)
        chance, variance = chance + p, variance + p * (1 - p)
    return (score - chance) / sqrt(variance)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_longest_option_is_no_hint(language):
    rows = [row for _, row in interview.items()]
    assert hint_of_length(rows, language) < 2
    planted = [
        row
        | {"options": {k: {"text": {language: k}} for k in ("a", "bb", "ccc")}}
        | {"answer": "ccc"}
        for row in rows[:20]
    ]
    assert hint_of_length(planted, language) > 5
