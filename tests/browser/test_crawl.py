"""The crawl of the site notices each fault that it looks for."""

import pytest

from tests.browser import crawl
from tests.browser.conftest import VIEWPORTS, awake
from tests.browser.crawl import (
    Watch,
    axe_violations,
    look_at,
    looks,
    turn,
    visit,
)
from tests.lanes import first_quick


@pytest.mark.parametrize("path", ["", "no-such-page/"], ids=["portal", "404"])
def test_page(path, site, open_page, browser_checks):
    # Without scripts the portal stays where it is and can be looked at.
    page = open_page(java_script_enabled=path != "")
    visit(path, site, page, browser_checks)


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
    awake(page)
    line = watch.weigh(page.url)
    assert line.endswith(" KB") and not watch.problems
    monkeypatch.setattr(crawl, "FIRST_LOAD", 1000)
    watch.weigh(page.url)
    assert watch.problems[0].startswith(f"too heavy: {line}")


@pytest.mark.parametrize("what", first_quick(*PLANTED))
def test_crawl_notices(what, site, open_page):
    """Each check of the crawl fails on a page where its fault is planted."""
    page = open_page(viewport=VIEWPORTS["phone"])
    watch = Watch(page, site[1])
    page.goto(site[1] + "en/")
    page.evaluate(f"() => {{ {PLANTED[what]} }}")
    look_at(page, VIEWPORTS["phone"]["width"], watch)
    for _ in range(300):  # what the browser tells comes when it comes
        if any(what in problem for problem in watch.problems):
            break
        page.wait_for_timeout(100)
    assert any(what in problem for problem in watch.problems), watch.problems


WORD = "<span style='color: {}'>{}</span>"
GREY = {"light": "#999", "dark": "#555"}  # too pale, too dim
LINKED = "<p>Much is said of <a href='/' style='{}'>one word</a> and of others.</p>"
LIKE_TEXT = {"light": "color: #444", "dark": "color: #aaa"}
LIKE_TEXT = {k: f"{v}; text-decoration: none; border: 0" for k, v in LIKE_TEXT.items()}
BELOW = "<div style='position: relative; height: 3em; background: {}'>{}</div>"
OVER = "<p style='position: absolute; inset: 0'>A line of this text.</p>"
HIDDEN = {
    "a word": ("color-contrast", lambda scheme: WORD.format(GREY[scheme], "word")),
    "a faded word": (
        "color-contrast",
        lambda scheme: "<span style='opacity: .3'>word</span>",
    ),
    "a field": (
        "color-contrast",
        lambda scheme: (
            f"<input aria-label=x value=word style='color: {GREY[scheme]};"
            f" background: #777'>"
        ),
    ),
    "the ground of a word": (
        "color-contrast",
        lambda scheme: "<span style='background: #777'>word</span>",
    ),
    "what lies beneath a word": (
        "color-contrast",
        lambda scheme: BELOW.format("#777", OVER),
    ),
    "a link": (
        "link-in-text-block",
        lambda scheme: LINKED.format(LIKE_TEXT[scheme]),
    ),
}


@pytest.fixture(scope="module")
def long_page(site, browser):
    """A long page in either scheme, all of its looks known."""
    context = browser.new_context(viewport=VIEWPORTS["phone"])
    page = context.new_page()
    page.goto(site[1] + "en/attention/soft-capping/")
    for scheme in GREY:
        turn(page, scheme)
        assert not axe_violations(page, colours_only=True)
    yield page
    context.close()


PLANT = """html => {
  const every = [...document.querySelectorAll('article p')];
  const words = every.filter(e => e.checkVisibility()).at(-12);
  words.insertAdjacentHTML('beforeend', html);
  return () => words.lastElementChild.remove();
}"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", GREY)
@pytest.mark.parametrize("what", HIDDEN)
def test_one_among_thousands_is_noticed(what, scheme, long_page, browser_checks):
    """Colours are judged once a look; a look that stands there once is judged too."""
    rule, planted = HIDDEN[what]
    turn(long_page, scheme)
    undo = long_page.evaluate_handle(PLANT, planted(scheme))
    found = axe_violations(long_page, colours_only=True)
    undo.evaluate("undo => undo()")
    assert len(found) == 1 and f" {rule}: " in found[0], found
    browser_checks.add(1)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", GREY)
def test_elements_of_one_look_are_judged_alike(scheme, long_page, browser_checks):
    """axe, asked of all, never fails one and passes another that looks the same."""
    turn(long_page, scheme)
    three = f"<span>{WORD.format(GREY[scheme], 'word') * 3}</span>"
    undo = long_page.evaluate_handle(PLANT, three)
    seen, context = looks(long_page)
    keys = seen.evaluate("looks => looks.keys")
    _, verdicts = seen.evaluate(
        "(looks, question) => looks.ask(question)",
        {"keys": keys, "context": context, "every": True},
    )
    undo.evaluate("undo => undo()")
    failed = [each for _, each in verdicts if "violations" in each]
    assert failed == [3 * ["violations"]]
    assert sum(len(each) for _, each in verdicts) > 3 * len(verdicts)
    browser_checks.add(len(verdicts))
