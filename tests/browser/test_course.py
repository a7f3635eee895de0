"""The course keeps what a reader has finished, and reads without scripts."""

import json

import pytest

from tests.browser.conftest import VIEWPORTS, awake
from tests.browser.crawl import axe_violations

STATE = "localStorage.getItem('norms-measured.course')"
COUNT, NEXT = "course-progress .course-count", "course-progress .md-button"
DONE = "course-done button"
FIRST, SECOND = "scores-and-activations", "factor-per-layer"


def test_progress(visit, browser_checks):
    """Read a chapter, find it counted on all pages and in the other language."""
    page = visit(f"en/learn/{FIRST}/", viewport=VIEWPORTS["phone"])
    assert page.locator(COUNT).inner_text() == ""
    page.locator(DONE).click()
    assert page.locator(DONE).get_attribute("aria-pressed") == "true"
    assert page.locator(COUNT).inner_text() == "1 of 9 read"
    assert json.loads(page.evaluate(STATE)) == {FIRST: True}
    assert not axe_violations(page)
    page.locator("article a", has_text="Why deep networks need it").last.click()
    page.wait_for_url(f"**/{SECOND}/")  # instant navigation
    page.locator(f"course-done[data-chapter={SECOND}] button").click()
    page.goto(page.url.replace(f"en/learn/{SECOND}/", "zh/learn/"))
    awake(page)
    assert page.locator(COUNT).inner_text() == "已读 2/9 章"
    assert page.locator(".course li.done").count() == 2
    assert page.locator(NEXT).get_attribute("href").endswith("/rows-and-columns/")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not axe_violations(page)
    browser_checks.add(10)


def test_a_chapter_is_taken_back(visit, browser_checks):
    page = visit(f"zh/learn/{SECOND}/")
    page.locator(DONE).click()
    page.reload()
    assert page.locator(DONE).get_attribute("aria-pressed") == "true"
    page.locator(DONE).click()
    assert page.evaluate(STATE) == "{}" and page.locator(COUNT).inner_text() == ""
    browser_checks.add(2)


def test_what_is_kept_may_be_damaged(visit, browser_checks):
    page = visit("en/learn/")
    for kept in ("[", "null", "[1]"):
        page.evaluate(f"localStorage.setItem('norms-measured.course', {kept!r})")
        page.reload()
        assert page.locator(COUNT).inner_text() == "0 of 9 read"
        assert page.locator(NEXT).get_attribute("href").endswith(f"/{FIRST}/")
    browser_checks.add(3)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_without_scripts(language, visit, browser_checks):
    page = visit(f"{language}/learn/{FIRST}/", java_script_enabled=False)
    place = page.locator("course-progress").inner_text()
    assert place.endswith({"zh": "第 1 章，共 9 章", "en": "chapter 1 of 9"}[language])
    assert page.locator(DONE).count() == 0
    assert page.locator("article a[href$='factor-per-layer/']").is_visible()
    page.goto(page.url.replace(f"{FIRST}/", ""))
    assert page.locator(".course li a").count() == 9
    browser_checks.add(4)
