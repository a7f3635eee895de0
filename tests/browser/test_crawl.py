"""The crawl of the site notices each fault that it looks for."""

import pytest

from tests.browser import crawl
from tests.browser.conftest import VIEWPORTS
from tests.browser.crawl import Watch, look_at, visit


@pytest.mark.parametrize("path", ["", "no-such-page/"], ids=["portal", "404"])
def test_page(path, site, open_page, browser_checks):
    visit(path, site, open_page, browser_checks)


ADD = "document.querySelector('article').innerHTML += "
PLANTED = {
    "off-site": "new Image().src = 'http://127.0.0.1:9/x.png'",
    "console error": "console.error('planted')",
    "error: ": "setTimeout(() => { throw new Error('planted') })",
    "HTTP 404": "fetch('no-such-file.json')",
    "scrolls": ADD + "'<div style=width:3000px>.</div>'",
    "axe": ADD + "'<a href=\"/\"></a>'",
    "number broken": ADD + "'<table><tr><td style=\"max-width:2em;"
    "overflow-wrap:anywhere\">1234567890</td></tr></table>'",
    "formula": ADD + r"'<p>\\(x\\)</p>'",
}


def test_a_heavy_page_is_noticed(site, open_page, monkeypatch):
    page = open_page()
    watch = Watch(page, site[1])
    page.goto(site[1] + "en/")
    page.wait_for_load_state("networkidle")
    line = watch.weigh(page.url)
    assert line.endswith(" KB") and not watch.problems
    monkeypatch.setattr(crawl, "FIRST_LOAD", 1000)
    watch.weigh(page.url)
    assert watch.problems[0].startswith(f"too heavy: {line}")


@pytest.mark.parametrize("what", PLANTED)
def test_crawl_notices(what, site, open_page):
    """Each check of the crawl fails on a page where its fault is planted."""
    page = open_page(viewport=VIEWPORTS["phone"])
    watch = Watch(page, site[1])
    page.goto(site[1] + "en/")
    page.evaluate(f"() => {{ {PLANTED[what]} }}")
    page.wait_for_timeout(200)
    look_at(page, VIEWPORTS["phone"]["width"], watch)
    assert any(what in problem for problem in watch.problems), watch.problems
