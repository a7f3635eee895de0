"""CONTRIBUTING lists every law of the pages, each with the test that plants a fault."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
TEXT = (TESTS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"^\| `([\w/]+\.py)` \| .+ \| `(?:([\w/]+\.py)::)?(test_\w+)` \|$", re.M
)
LAWS = {law: (where or law, test) for law, where, test in ROW.findall(TEXT)}
ASIDE = {  # what the laws are made of, or hold a page to one record each
    "pages/test_reading.py",
    "pages/test_said_of_records.py",
}


@pytest.mark.parametrize("law", LAWS)
def test_the_planted_fault_is_there(law):
    where, test = LAWS[law]
    assert (TESTS / law).is_file()
    assert f"\ndef {test}(" in (TESTS / where).read_text(encoding="utf-8")


def test_every_law_is_listed():
    folders = (TESTS / "pages", TESTS / "site" / "laws")
    found = {p.relative_to(TESTS).as_posix() for f in folders for p in f.glob("test_*")}
    assert found - ASIDE <= set(LAWS)
    assert set(ASIDE) <= found
