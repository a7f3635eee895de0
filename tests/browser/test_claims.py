"""The ledger in a browser: filtered by mouse and by keyboard, whole without scripts."""

import pytest

from scripts.site.data import claims
from tests.browser.conftest import VIEWPORTS, awake

TOPIC = "attention-logits"
ROWS = claims.rows(TOPIC)
WRONG = sum(row["verdict"] == "wrong" for row in ROWS)
SHOWN = ".claim:not([hidden])"


@pytest.mark.parametrize("viewport", VIEWPORTS)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_filter_by_mouse(language, viewport, site, open_page, browser_checks):
    page = open_page(viewport=VIEWPORTS[viewport])
    page.goto(f"{site[1]}{language}/claims/{TOPIC}/")
    button = page.locator(".filter button[value=wrong]")
    button.click()
    assert page.locator(SHOWN).count() == WRONG < len(ROWS)
    assert button.get_attribute("aria-pressed") == "true"
    page.locator(".filter button").first.click()
    assert page.locator(SHOWN).count() == len(ROWS)
    browser_checks.add(2)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_filter_by_keyboard(language, site, open_page, browser_checks):
    page = open_page()
    page.goto(f"{site[1]}{language}/claims/{TOPIC}/")
    page.locator(".filter button").first.focus()
    while page.evaluate("document.activeElement.value") != "wrong":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator(SHOWN).count() == WRONG
    browser_checks.add()


def test_a_link_shows_a_hidden_claim(site, open_page, browser_checks):
    page = open_page()
    page.goto(f"{site[1]}en/claims/{TOPIC}/")
    page.locator(".filter button[value=wrong]").click()
    right = next(row["id"] for row in ROWS if row["verdict"] != "wrong")
    page.evaluate(f"location.hash = '#{right}'")
    page.locator(f"#{right}").wait_for(state="visible")
    browser_checks.add()


@pytest.mark.parametrize("language", ["zh", "en"])
def test_an_old_link_leads_on(language, site, open_page, browser_checks):
    """The fold opens at the old anchor, which is a link to where the claim is now."""
    topic, row = next(item for item in claims.everything() if item[1].get("was"))
    page = open_page()
    page.goto(f"{site[1]}{language}/claims/{row['was']}/#{row['id']}")
    page.locator(f"a#{row['id']}").click()
    page.wait_for_url(f"**/{language}/claims/{topic}/#{row['id']}")
    page.locator(f"h2#{row['id']} .verdict").wait_for()
    browser_checks.add(1)


def test_filter_after_instant_navigation(site, open_page, browser_checks):
    page = open_page()
    page.goto(f"{site[1]}en/claims/")
    awake(page)
    page.locator(f".md-content a[href*='{TOPIC}']").first.click()
    page.locator(".filter button[value=wrong]").click()
    assert page.locator(SHOWN).count() == WRONG
    browser_checks.add()


def test_without_scripts_all_is_shown(site, open_page, browser_checks):
    page = open_page(java_script_enabled=False)
    page.goto(f"{site[1]}en/claims/{TOPIC}/")
    assert page.locator(SHOWN).count() == len(ROWS)
    assert page.locator(".filter").is_hidden()
    browser_checks.add()
