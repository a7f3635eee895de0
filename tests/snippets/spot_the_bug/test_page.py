"""The page names the lines, the fixes and the checks that the tests use."""

import importlib

import pytest

from scripts.site.reading.source import ROOT, SNIPPETS, without_fences

LISTINGS = sorted(p.stem for p in (SNIPPETS / "spot_the_bug").glob("*.py"))
PAGES = {
    lang: (ROOT / f"docs/{lang}/pages/interview/spot-the-bug.md").read_text("utf-8")
    for lang in ("zh", "en")
}


@pytest.mark.parametrize("lang", PAGES)
@pytest.mark.parametrize("name", LISTINGS)
def test_answer(name, lang):
    suite = importlib.import_module(f"tests.snippets.spot_the_bug.test_{name}")
    _, _, after = without_fences(PAGES[lang]).partition(
        f"{{ #{name.replace('_', '-')} }}"
    )
    answer = after.partition("\n#")[0]
    sound = suite.JUDGED is suite.LISTING
    assert sound == ({"zh": "没有错", "en": "no fault"}[lang] in answer)
    for line in () if sound else (*suite.BUG.splitlines(), *suite.FIX.splitlines()):
        assert f"`{line}`" in answer
    named = [c.__name__ for c in suite.CHECKS if f"`{c.__name__}`" in answer]
    assert named, "names no check"
    for check in suite.CHECKS:
        rejects = False
        try:
            check(suite.LISTING)
        except AssertionError:
            rejects = True
        assert rejects != sound, f"{check.__name__} does not see the fault"


def test_one_or_two_have_no_fault():
    suites = [
        importlib.import_module(f"tests.snippets.spot_the_bug.test_{name}")
        for name in LISTINGS
    ]
    assert 1 <= sum(suite.JUDGED is suite.LISTING for suite in suites) <= 2
