"""The home page's first screen: the token, the claims, the way to the search."""

import pytest

from tests.browser.conftest import VIEWPORTS
from tests.browser.crawl import Watch


@pytest.fixture
def home(site, open_page):
    watches = []

    def home(language, **options):
        page = open_page(**options)
        watches.append(Watch(page, site[1]))
        page.goto(f"{site[1]}{language}/")
        return page

    yield home
    assert not [problem for watch in watches for problem in watch.problems]


@pytest.mark.parametrize(("language", "kept"), [("en", "did not move"), ("zh", "不变")])
def test_who_moves(language, kept, home, browser_checks):
    page = home(language, viewport=VIEWPORTS["phone"])
    add, times = page.locator("one-token label input").all()
    says = page.locator("one-token output")
    before = says.inner_text()
    add.focus()
    page.keyboard.press("ArrowRight")
    assert says.inner_text().count(kept) == 1  # LayerNorm alone
    page.locator("one-token button").click()
    assert says.inner_text() == before
    times.focus()
    page.keyboard.press("ArrowRight")
    assert says.inner_text().count(kept) == 2
    browser_checks.add(3)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_three_claims(language, home, browser_checks):
    page = home(language)
    claims = page.locator(".dare:visible")
    for number in range(3):
        assert claims.count() == 1
        shown = claims.first
        verdict = shown.get_attribute("data-verdict")
        right = verdict if number else {"holds": "wrong", "wrong": "holds"}[verdict]
        shown.locator("button").nth(["holds", "wrong"].index(right)).click()
        assert shown.locator("details").get_attribute("open") is not None
        if number == 2:
            assert "2" in shown.locator("output").inner_text()
        shown.locator("button").click()
        browser_checks.add(2)
    assert claims.count() == 1


def test_without_scripts_every_verdict_is_folded(home, browser_checks):
    page = home("en", java_script_enabled=False)
    assert page.locator(".dare:visible details").count() >= 12
    assert "LayerNorm's output stays" in page.locator("one-token").inner_text()
    browser_checks.add(2)


def test_the_button_opens_the_search(home, browser_checks):
    page = home("en")
    page.locator("open-search button").click()
    page.keyboard.type("overflow")
    hit = page.locator(".md-search-result__link[href*='low-precision']").first
    hit.wait_for(state="attached")
    browser_checks.add(1)
