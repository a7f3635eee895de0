"""Every page, both schemes, phone and desktop: nothing breaks, nothing leaks.

The pages of each language are a test file of their own, so that two workers share
them; this one looks at a page, and test_crawl.py proves that it notices faults.
"""

import gzip
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from tests.browser import page_length
from tests.browser.conftest import VIEWPORTS, awake, urls

SERIOUS = ("serious", "critical")
LOCAL = ("data:", "blob:")
LEFT = "net::ERR_ABORTED"  # the visitor went on before it had come
# First load of a page: HTML, CSS and script, in bytes as a server sends them (gzip).
# A lab's HTML is weighed as it is.
FIRST_LOAD, LAB_HTML = 200_000, 200_000
WEIGHED = ("document", "stylesheet", "script")
LOOKS = (Path(__file__).parent / "looks.js").read_text("utf-8")
JUDGED = None  # a Looks, set by the fixture ``browser``
ONLY_HERE = "!"  # begins a look that has to do with what lies over an element
# The picture of a formula; screen readers get the MathML beside it.
FORMULAS = [".katex-html"]
# Thousands of coloured words and links, the same everywhere: one page is enough.
ALIKE = [[".highlight"], [".md-header"], [".md-sidebar--primary"], [".md-footer"]]
PAGE_WITH_ALL = "rmsnorm/rms-norm/"
# One page of each kind: `make test` looks once at it, `make test-all` at all pages.
KINDS = (
    "",
    PAGE_WITH_ALL,
    "rmsnorm/low-precision/",  # with a live figure
    "practice/model-atlas/",
    "practice/blocks-n-q/",
    "practice/released-models/",
    "claims/",
    "claims/basics/",
    "interview/",
    "interview/rms-norm/",
    "interview/coding/",
    "interview/quiz-methods/",
    "interview/mock/",
    "interview/sheet/",
    "reference/bugs/",
    "reference/glossary/",
    "labs/deep-stack/",
)


class Watch:
    """What goes wrong while a page loads, one line each."""

    def __init__(self, page, address, expect_404=False):
        self.problems, self.weight = [], {}
        self._address, self._expect_404 = address, expect_404
        self._page = page
        self._told = {
            "console": self._console,
            "pageerror": self._error,
            "request": self._request,
            "requestfailed": self._failed,
            "response": self._response,
        }
        for event, told in self._told.items():
            page.on(event, told)

    def leave(self) -> None:
        """What the page does from now on is not this watch's."""
        for event, told in self._told.items():
            self._page.remove_listener(event, told)

    def _error(self, error):
        self.problems.append(f"error: {error}")

    def _console(self, message):
        expected = self._expect_404 and "404" in message.text
        if message.type in ("error", "warning") and not expected:
            self.problems.append(f"console {message.type}: {message.text}")

    def _failed(self, request):
        if request.failure != LEFT:
            self.problems.append(f"failed: {request.url}: {request.failure}")

    def _request(self, request):
        if not request.url.startswith((self._address, *LOCAL)):
            self.problems.append(f"off-site: {request.url}")

    def _response(self, response):
        if response.status >= 400 and not self._expect_404:
            self.problems.append(f"HTTP {response.status}: {response.url}")
        worker = response.url.endswith(".js")
        if response.ok and (worker or response.request.resource_type in WEIGHED):
            self.weight[response.url] = response

    def weigh(self, url: str) -> str:
        """The page's first load as one line; too much of it is a problem."""
        bodies = {name: got.body() for name, got in self.weight.items()}
        sizes = {name: len(gzip.compress(body)) for name, body in bodies.items()}
        total, html = sum(sizes.values()), len(bodies[url])
        line = f"{total / 1000:.0f} KB compressed, HTML {html / 1000:.0f} KB"
        if total > FIRST_LOAD or ("/labs/" in url and html > LAB_HTML):
            self.problems.append(f"too heavy: {line}: {sizes}")
        return line


WIDE = """() => [...document.querySelectorAll('body *')]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .slice(0, 3).map(e => e.tagName + '.' + e.className)"""
SIDEWAYS_TABLES = """() => [...document.querySelectorAll('.md-typeset__scrollwrap')]
  .filter(e => e.scrollWidth > e.clientWidth + 1)
  .map(e => e.innerText.slice(0, 60))"""
BROKEN_NUMBERS = r"""() => {
  const broken = [], cells = 'article table:not([class]) :is(td, th)';
  for (const cell of document.querySelectorAll(cells)) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode()); ) {
      if (text.parentElement.closest('.katex, a, code')) continue;
      for (const number of text.data.matchAll(/\d+(?:[.,]\d+)*/g)) {
        const range = document.createRange();
        range.setStart(text, number.index);
        range.setEnd(text, number.index + number[0].length);
        if (range.getClientRects().length > 1) broken.push(number[0]);
      }
    }
  }
  return broken.slice(0, 3);
}"""
RAW_FORMULAS = r"""() => {
  const text = document.querySelector('article, main').cloneNode(true);
  text.querySelectorAll('pre, code, .katex, svg, script').forEach(e => e.remove());
  return (text.textContent.match(/\\[(\[]|\$[^$]+\$/g) || []).slice(0, 3);
}"""


def settle(page):
    """Wait until the fonts are there; what still moves jumps to its end."""
    page.evaluate(
        """() => document.fonts.ready.then(() => {
          for (const each of document.getAnimations())
            if (each.effect.getComputedTiming().endTime < Infinity) each.finish();
        })"""
    )


TURN = """scheme => {
  document.querySelector(`input[data-md-color-scheme=${scheme}]`)?.click();
  return document.body.dataset.mdColorScheme ?? scheme;
}"""
SCHEMES = {"light": "default", "dark": "slate"}


def turn(page, scheme: str) -> None:
    """Show the page in a scheme. The theme asks for the reader's on loading alone."""
    page.emulate_media(color_scheme=scheme)
    assert page.evaluate(TURN, SCHEMES[scheme]) == SCHEMES[scheme]


# Layout does not depend on the scheme nor contrast on the width: each page is
# loaded once, at the width of a phone in one scheme, then shown on a desktop in the
# other, where only what a scheme can change is asked of axe again.
VIEWS = {"phone": "light", "desktop": "dark"}
ONE_LOOK = {"zh": ("phone",), "en": ("desktop",)}  # in `make test`
FORGET = "() => { localStorage.clear(); sessionStorage.clear(); }"
NO_PAGES = ("", "no-such-page/")


def visit(path, site, page, browser_checks, views=tuple(VIEWS), record=None) -> None:
    """Open one page, look at it in each of VIEWS and fail with all that is wrong.

    The page's tab is left empty, for the next one. ``record`` takes the lines that say
    how much the page loads and how long it is.
    """
    watch = Watch(page, site[1], expect_404=path == "no-such-page/")
    try:
        lines = see(path, site, page, watch, browser_checks, views)
    finally:
        watch.leave()
        page.evaluate(FORGET)
        page.goto("about:blank")
    assert not watch.problems, "\n".join(watch.problems)
    for kind, line in lines if record else ():
        record(kind, line)


def see(path, site, page, watch: Watch, browser_checks, views) -> list[tuple[str, str]]:
    """Give ``watch`` all that is wrong; return the (kind, line) pairs to print."""
    lines = []
    page.set_viewport_size(VIEWPORTS[views[0]])
    page.emulate_media(color_scheme=VIEWS[views[0]])
    page.goto(site[1] + path)
    limited = path not in NO_PAGES and (
        page_length.is_topical(path) or page_length.is_chapter(path)
    )
    if limited:
        found = page_length.measure(page, path)
        watch.problems += found.problems()
        lines.append(("length", str(found)))
        browser_checks.add(2)
    for view in views:
        page.set_viewport_size(VIEWPORTS[view])
        turn(page, VIEWS[view])
        if path:
            later = view != views[0]
            look_at(page, VIEWPORTS[view]["width"], watch, colours_only=later)
        browser_checks.add(9 if path else 4)
    if path not in NO_PAGES:
        awake(page)
        line = watch.weigh(page.url)
        lines.append(("measured", f"first load of {path}: {line}"))
    return lines


def look_at(page, width: int, watch: Watch, colours_only=False) -> None:
    """Width, tables, formulas and accessibility of the page as it stands."""
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    watch.problems += axe_violations(page, colours_only)  # it settles the page
    if not fits(page, width):
        watch.problems.append(f"scrolls sideways: {page.evaluate(WIDE)}")
    for table in page.evaluate(SIDEWAYS_TABLES):
        watch.problems.append(f"table scrolls sideways: {table!r}")
    for number in page.evaluate(BROKEN_NUMBERS):
        watch.problems.append(f"number broken in a table: {number}")
    for formula in page.evaluate(RAW_FORMULAS):
        watch.problems.append(f"formula not rendered: {formula!r}")


def fits(page, width: int) -> bool:
    """Whether the page is no wider than the window, once what moves has moved."""
    for _ in range(30):
        if page.evaluate("document.documentElement.scrollWidth") <= width:
            return True
        page.wait_for_timeout(100)
    return False


def looks(page) -> tuple:
    """(the looks of the page as a handle, the context that axe is asked about)."""
    settle(page)
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"{AXE_SCRIPT};0")
    everything = page.url.endswith(PAGE_WITH_ALL)
    outside = [FORMULAS] if everything else [FORMULAS, *ALIKE]
    names = ", ".join(name for (name,) in outside)
    return page.evaluate_handle(LOOKS, names), {"exclude": outside}


def axe_violations(page, colours_only=False) -> list[str]:
    """What axe finds; ``colours_only`` asks what a scheme can change.

    A look that axe has judged is not asked about again, on whatever page it is.
    """
    seen, context = looks(page)
    keys = JUDGED.unknown(seen.evaluate("looks => looks.keys"))
    whole = not colours_only or page.url.endswith(PAGE_WITH_ALL)
    if not (keys or whole):
        return []
    question = {"keys": keys, "context": context, "whole": whole}
    found, verdicts = seen.evaluate(
        "(looks, question) => looks.ask(question)", question
    )
    JUDGED.add(
        [
            key
            for key, each in verdicts
            if "violations" not in each and not key.startswith(ONLY_HERE)
        ]
    )
    return [
        f"axe {impact} {rule}: {target} {html[:100]}"
        for impact, rule, target, html in found
        if impact in SERIOUS
    ]


def pages(language: str) -> list:
    """Cases (path, views): one look at a page of each kind; all looks are slow."""
    kinds = [f"{language}/{kind}" for kind in KINDS]
    slow = pytest.mark.slow
    return [
        *(pytest.param(path, ONE_LOOK[language], id=path) for path in kinds),
        *(
            pytest.param(path, tuple(VIEWS), id=f"{path}-all-views", marks=slow)
            for path in urls(language)
        ),
    ]
