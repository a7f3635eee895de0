"""What the page's three models are told to have is what was planted in them."""

import pytest

pytest.importorskip("transformers")

import importlib

from scripts.examine import faults
from scripts.examine.load import load
from scripts.examine.probe import probe
from scripts.site.reading.source import LANGUAGES, ROOT
from tests.examine import faulty

PAGES = "docs/{}/pages/practice/examine-your-model.md"
PLANTED = {
    "clean": set(),
    "leaking": {"over-tokens", "eps-outside", "later-outside"},
    "ported": {"gain-centred", "no-final", "idle"},
}


@pytest.mark.parametrize("name", PLANTED)
def test_faults(name):
    module = f"snippets.examine_your_model.{name}"
    importlib.import_module(module)
    found = faults.judged(probe(load(f"{module}:decoder", {})), False)
    assert {rule for rule, *_ in found["faults"]} == PLANTED[name]
    assert found["remarks"] == []


def test_the_page_lists_what_the_tests_plant():
    page = (ROOT / PAGES.format("en")).read_text(encoding="utf-8")
    left = [name for name in faulty.FOUND if f"| {name} |" not in page]
    assert not left
    rows = [
        (ROOT / PAGES.format(language)).read_text(encoding="utf-8").count("\n    | ")
        for language in LANGUAGES
    ]
    assert rows[0] == rows[1]
