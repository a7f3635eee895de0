"""Every text that readers see keeps the rules of prose.yml and the Chinese terms."""

import re

import pytest

from scripts.site.reading.source import ROOT
from tests.pages import prose, site_texts, test_terms
from tests.pages.page_prose import EN, LABS, ZH

SHOWN = ("snippets/*/*", "docs/data/**/*", "docs/labs/*.py", "docs/portal/*.html")
RENDERED = ("docs/facts/*/*.json", "docs/figures/**/*.svg")


@pytest.mark.parametrize("rule", prose.RULES, ids=lambda rule: rule.rule)
def test_each_rule_refuses_its_bad_sentences_alone(rule):
    assert rule.bad and all(rule.violations(text) for text in rule.bad)
    assert not [line for text in rule.good for line in rule.violations(text)]


def test_pages(no_violations):
    no_violations(
        f"{page.where}:{line}"
        for page in (*ZH.values(), *EN.values(), *LABS)
        for line in prose.violations(page.text, page.lang)
    )


def test_other_texts(no_violations):
    texts = site_texts.everything()
    assert len(texts) > 3000
    no_violations(
        f"{one.where}: {line.partition(': ')[2]}"
        for one in texts
        for line in prose.violations(one.text, one.language) + terms(one)
    )


def test_files_that_readers_see(no_violations):
    """Also code, tables of data and templates hold nothing of the workshop."""
    rules = [rule for rule in prose.RULES if rule.raw and not rule.language]
    files = [path for glob in SHOWN for path in sorted(ROOT.glob(glob))]
    no_violations(
        f"{path.relative_to(ROOT)}:{line}"
        for path in files
        if path.is_file()
        for rule in rules
        for line in rule.violations(path.read_text(encoding="utf-8"))
    )


def test_facts_and_figures(no_violations):
    """What a record puts into a page: facts, and the words of its figure."""
    files = [path for glob in RENDERED for path in sorted(ROOT.glob(glob))]
    assert len(files) > 60
    no_violations(
        f"{path.relative_to(ROOT)}: {text}"
        for path in files
        for text in spaced_per_cents(path.read_text(encoding="utf-8"))
    )


def spaced_per_cents(rendered: str) -> list[str]:
    """Numbers in a file of facts, or between the tags of a drawing, such as '30 %'."""
    return re.findall(r"\d %", rendered)


def test_a_space_before_a_per_cent_sign_is_refused():
    assert spaced_per_cents('{"facts": {"share": "30 %"}}') == ["0 %"]
    assert spaced_per_cents("<text>噪声底 7.9 %。</text>") == ["9 %"]
    assert not spaced_per_cents('{"share": "30%"} <text>占复制带宽（%）</text>')


def terms(one: site_texts.Text) -> list[str]:
    """Chinese words that docs/data/terms.yml replaces by another."""
    chinese = one.language == "zh"
    return test_terms.refused(one.text, test_terms.TERMS) if chinese else []
