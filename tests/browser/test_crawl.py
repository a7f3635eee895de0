"""Every page, both schemes, phone and desktop: nothing breaks, nothing leaks."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import SCHEMES, VIEWPORTS, urls

PAGES = ["", *urls("zh"), *urls("en"), "no-such-page/"]
SERIOUS = ("serious", "critical")
LOCAL = ("data:", "blob:")


class Watch:
    """What goes wrong while a page loads, one line each."""

    def __init__(self, page, address, expect_404=False):
        self.problems = []
        self._address, self._expect_404 = address, expect_404
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("request", self._request)
        page.on("requestfailed", lambda r: self.problems.append(f"failed: {r.url}"))
        page.on("response", self._response)

    def _console(self, message):
        expected = self._expect_404 and "404" in message.text
        if message.type in ("error", "warning") and not expected:
            self.problems.append(f"console {message.type}: {message.text}")

    def _request(self, request):
        if not request.url.startswith((self._address, *LOCAL)):
            self.problems.append(f"off-site: {request.url}")

    def _response(self, response):
        if response.status >= 400 and not self._expect_404:
            self.problems.append(f"HTTP {response.status}: {response.url}")


WIDE = """() => [...document.querySelectorAll('body *')]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .slice(0, 3).map(e => e.tagName + '.' + e.className)"""
SIDEWAYS_TABLES = """() => [...document.querySelectorAll('.md-typeset__scrollwrap')]
  .filter(e => e.scrollWidth > e.clientWidth + 1)
  .map(e => e.innerText.slice(0, 60))"""
RAW_FORMULAS = r"""() => {
  const text = document.querySelector('article, main').cloneNode(true);
  text.querySelectorAll('pre, code, .katex, svg, script').forEach(e => e.remove());
  return (text.textContent.match(/\\[(\[]|\$[^$]+\$/g) || []).slice(0, 3);
}"""


def settle(page):
    page.wait_for_load_state("networkidle")
    page.evaluate("() => document.fonts.ready.then(() => true)")


@pytest.mark.parametrize("viewport", VIEWPORTS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("path", PAGES, ids=lambda p: p or "portal")
def test_page(path, scheme, viewport, site, open_page, browser_checks):
    size = VIEWPORTS[viewport]
    # Without scripts the portal stays where it is and can be looked at.
    page = open_page(color_scheme=scheme, viewport=size, java_script_enabled=path != "")
    watch = Watch(page, site[1], expect_404=path == "no-such-page/")
    page.goto(site[1] + path)
    page.wait_for_load_state("networkidle")
    browser_checks.add(4)  # console, failed requests, off-site requests, CSP
    if path:
        settle(page)
        look_at(page, size["width"], watch)
        browser_checks.add(4)
    assert not watch.problems, "\n".join(watch.problems)


def look_at(page, width: int, watch: Watch) -> None:
    """Width, tables, formulas and accessibility of the page as it stands."""
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    if page.evaluate("document.documentElement.scrollWidth") > width:
        watch.problems.append(f"scrolls sideways: {page.evaluate(WIDE)}")
    for table in page.evaluate(SIDEWAYS_TABLES):
        watch.problems.append(f"table scrolls sideways: {table!r}")
    for formula in page.evaluate(RAW_FORMULAS):
        watch.problems.append(f"formula not rendered: {formula!r}")
    watch.problems += axe_violations(page)


def axe_violations(page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"axe {v['impact']} {v['id']}: {node['target']} {node['html'][:100]}"
        for v in found
        if v["impact"] in SERIOUS
        for node in v["nodes"][:3]
    ]


ADD = "document.querySelector('article').innerHTML += "
PLANTED = {
    "off-site": "new Image().src = 'http://127.0.0.1:9/x.png'",
    "console error": "console.error('planted')",
    "error: ": "setTimeout(() => { throw new Error('planted') })",
    "HTTP 404": "fetch('no-such-file.json')",
    "scrolls": ADD + "'<div style=width:3000px>.</div>'",
    "axe": ADD + "'<a href=\"/\"></a>'",
    "formula": ADD + r"'<p>\\(x\\)</p>'",
}


@pytest.mark.parametrize("what", PLANTED)
def test_crawl_notices(what, site, open_page):
    """Each check of the crawl fails on a page where its fault is planted."""
    page = open_page(viewport=VIEWPORTS["phone"])
    watch = Watch(page, site[1])
    page.goto(site[1] + "en/")
    settle(page)
    page.evaluate(f"() => {{ {PLANTED[what]} }}")
    page.wait_for_timeout(200)
    look_at(page, VIEWPORTS["phone"]["width"], watch)
    assert any(what in problem for problem in watch.problems), watch.problems
