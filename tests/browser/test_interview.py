"""The question bank in a browser: filter, answers, sheet, search; whole without
scripts."""

import json
import re

import pytest

from scripts.site.questions import interview, interview_pages
from scripts.site.questions.interview import GROUPS, LEVELS
from scripts.site.reading.source import LANGUAGES
from tests.browser.conftest import VIEWPORTS, awake
from tests.browser.crawl import axe_violations
from tests.browser.test_search import results

pytestmark = pytest.mark.skipif(
    not (interview.bank() and interview.items()), reason="the bank is empty"
)
GROUP = max(GROUPS, key=lambda group: len(interview.questions(group)))
ROWS = interview.questions(GROUP)
SCREENING = sum(row["level"] == LEVELS[0] for row in ROWS)
SHOWN = ".asked:not([hidden])"
QUIZ = next((p for p, of in interview_pages.QUIZ_PAGES.items() if GROUP in of), "")
ITEMS = interview.quiz(GROUP)
ANSWERS = " ".join(f"{item['id']}:{item['answer']}" for item in ITEMS)
SCORE = f"quiz-score[data-items='{ANSWERS}']"


@pytest.mark.parametrize(("language", "viewport"), [("zh", "phone"), ("en", "desktop")])
def test_filter_by_mouse(language, viewport, visit, browser_checks):
    page = visit(f"{language}/interview/{GROUP}/", viewport=VIEWPORTS[viewport])
    button = page.locator(".filter button[value=screening]")
    button.click()
    assert page.locator(SHOWN).count() == SCREENING < len(ROWS)
    assert button.get_attribute("aria-pressed") == "true"
    page.locator(".filter button[value=public]").click()
    assert page.locator(SHOWN).count() == sum("asked" in row for row in ROWS) > 0
    button.click()
    other = next(row["id"] for row in ROWS if row["level"] != LEVELS[0])
    page.evaluate(f"location.hash = '#{other}'")
    page.locator(f"#{other}").wait_for(state="visible")
    assert page.locator(SHOWN).count() == len(ROWS)
    browser_checks.add(3)


@pytest.mark.parametrize(("language", "viewport"), [("zh", "phone"), ("en", "desktop")])
def test_the_index_lists_what_was_asked_in_public(
    language, viewport, visit, browser_checks
):
    page = visit(f"{language}/interview/", viewport=VIEWPORTS[viewport])
    page.evaluate(
        "document.querySelectorAll('.only ~ details').forEach(d => d.open = 1)"
    )
    links = page.locator(".only ~ details li:visible")
    everything = links.count()
    page.locator(".only input").check()
    asked = sum("asked" in row for _, row in interview.bank())
    assert links.count() == asked < len(interview.bank()) <= everything
    assert page.locator(".only ~ details li:visible .public").count() == asked
    assert not axe_violations(page)
    browser_checks.add(3)


def test_filter_by_keyboard(visit, browser_checks):
    page = visit(f"en/interview/{GROUP}/")
    page.locator(".filter button").first.focus()
    while page.evaluate("document.activeElement.value") != "screening":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator(SHOWN).count() == SCREENING
    answer = page.locator(f"{SHOWN} details").first
    assert answer.get_attribute("open") is None
    answer.locator("summary").first.click()
    answer.locator("p").first.wait_for(state="visible")
    browser_checks.add(2)


@pytest.mark.parametrize(("language", "viewport"), [("zh", "phone"), ("en", "desktop")])
@pytest.mark.parametrize("scripts", [True, False])
def test_the_answer_of_a_follow_up_is_folded_behind_it(
    language, viewport, scripts, visit, browser_checks
):
    options = {"viewport": VIEWPORTS[viewport], "java_script_enabled": scripts}
    page = visit(f"{language}/interview/{GROUP}/", **options)
    boxes = page.locator(f"{SHOWN} details.question")
    assert boxes.count() == len(ROWS)
    box = boxes.first
    page.locator(f"{SHOWN} > details > summary").first.click()
    label = interview_pages.WORDS[language]["follow_up"]
    assert box.locator("summary").inner_text().startswith(label)
    assert box.locator("p").first.is_hidden()
    box.locator("summary").focus()
    page.keyboard.press("Enter")
    box.locator("p").first.wait_for(state="visible")
    if scripts:
        assert not axe_violations(page)
    browser_checks.add(4)


@pytest.mark.parametrize("language", LANGUAGES)
def test_on_paper_all_boxes_are_open(language, visit, browser_checks):
    page = visit(f"{language}/interview/{GROUP}/")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    closed = page.locator(f"{SHOWN} details:not([open])")
    closed.first.wait_for(state="detached")
    assert closed.count() == 0
    browser_checks.add()


def test_without_scripts_all_can_be_read(visit, browser_checks):
    page = visit(f"en/interview/{GROUP}/", java_script_enabled=False)
    assert page.locator(SHOWN).count() == len(ROWS)
    assert page.locator(".filter").is_hidden()
    page.goto(page.url.replace(GROUP, QUIZ))
    assert page.locator("fieldset button, output").count() == 0
    key = page.locator(f"#{ITEMS[0]['id']} details").first
    key.locator("summary").first.click()
    key.locator("li").last.wait_for(state="visible")
    items = page.locator(SCORE)
    assert items.inner_text() == f"{len(ITEMS)} items"
    browser_checks.add(4)


@pytest.mark.parametrize("language", LANGUAGES)
def test_sheet_prints_in_columns(language, visit, browser_checks):
    page = visit(f"{language}/interview/sheet/")
    page.evaluate("window.print = () => { window.printed = true }")
    page.locator("sheet-buttons button").last.click()
    assert page.evaluate("window.printed") is True
    assert page.locator(".sheet > ol > li").count() == len(interview_pages.chosen())
    page.emulate_media(media="print")
    style = "getComputedStyle(document.querySelector('.sheet')).columnCount"
    assert page.evaluate(style) == "2"
    assert page.locator(".md-header:visible, sheet-buttons:visible").count() == 0
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type /Page\b", printed)) == 2  # one leaf, both sides
    browser_checks.add(5)


@pytest.mark.parametrize(
    ("language", "viewport", "scheme"),
    [("zh", "phone", "dark"), ("en", "desktop", "light")],
)
def test_the_sheet_hides_its_answers(language, viewport, scheme, visit, browser_checks):
    """By keyboard and mouse, one by one, not on paper, and none without being asked."""
    options = {"viewport": VIEWPORTS[viewport], "color_scheme": scheme}
    page = visit(f"{language}/interview/sheet/", **options)
    items = page.locator(".sheet > ol > li")
    answers = page.locator(".sheet > ol > li > :nth-child(n + 2):not(button)")
    count = answers.count()
    assert count >= items.count() == interview_pages.SHEET
    assert answers.filter(visible=True).count() == count
    switch = page.locator("sheet-buttons button").first
    switch.focus()
    page.keyboard.press("Enter")
    assert switch.get_attribute("aria-pressed") == "true"
    assert answers.filter(visible=True).count() == 0
    assert items.locator("a").filter(visible=True).count() == interview_pages.SHEET
    shows = items.locator("> button")
    page.keyboard.press("Tab")  # Print
    page.keyboard.press("Tab")  # the link of the first question
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert shows.first.get_attribute("aria-expanded") == "true"
    assert page.evaluate(
        "document.activeElement.parentElement.hasAttribute('data-open')"
    )
    shows.nth(7).click()
    opened = items.locator("> :not(:first-child, button)").filter(visible=True)
    assert opened.count() == sum(
        items.nth(i).locator("> :not(:first-child, button)").count() for i in (0, 7)
    )
    assert not axe_violations(page)
    page.emulate_media(media="print")
    assert answers.filter(visible=True).count() == count
    assert shows.filter(visible=True).count() == 0
    assert len(re.findall(rb"/Type /Page\b", page.pdf(prefer_css_page_size=True))) == 2
    page.emulate_media(media="screen")
    shows.nth(7).click()
    assert shows.nth(7).get_attribute("aria-expanded") == "false"
    switch.click()
    assert answers.filter(visible=True).count() == count
    switch.click()
    assert answers.filter(visible=True).count() == 0  # asked anew, all of them
    browser_checks.add(12)


def test_the_sheet_without_scripts_is_whole(visit, browser_checks):
    page = visit("en/interview/sheet/", java_script_enabled=False)
    assert (
        page.locator(".sheet > ol > li > p:visible").count()
        >= 2 * interview_pages.SHEET
    )
    assert page.locator("sheet-buttons button, .sheet button").count() == 0
    browser_checks.add(2)


@pytest.mark.parametrize(("language", "query"), [("zh", "面试"), ("en", "interview")])
def test_search_finds_questions(language, query, visit, site, browser_checks):
    index = json.loads((site[0] / language / "search/search_index.json").read_text())
    known = {entry["location"] for entry in index["docs"]}
    wanted = {f"interview/{group}/#{row['id']}" for group, row in interview.bank()}
    assert wanted <= known
    sheet = {location for location in known if "interview/sheet/" in location}
    assert sheet == {"interview/sheet/"}  # the page by its names, no question twice
    page = visit(f"{language}/")
    results(page, query)
    hit = page.locator(".md-search-result__link[href*='/interview/']").first
    hit.wait_for(state="attached")
    browser_checks.add(2)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_link_to_a_question_opens_its_answer(language, visit, browser_checks):
    """From an address and from another page; not from the page's own contents."""
    wanted = ROWS[-1]["id"]
    page = visit(f"{language}/interview/{GROUP}/#{wanted}")
    assert page.locator(f".asked:has(#{wanted}) > details[open]").count() == 1
    assert page.locator(f"{SHOWN} details[open]").count() == 1  # no follow-up's
    page.goto(page.url.split("interview/")[0] + "interview/sheet/")
    awake(page)
    page.evaluate("window.stillHere = true")
    link = page.locator(".sheet li a[href*='/attention/#']").last
    target = link.evaluate("a => a.hash.slice(1)")
    link.click()
    page.locator(f".asked:has(#{target}) > details[open]").wait_for()
    assert page.evaluate("window.stillHere") is True
    page.wait_for_function(
        f"""() => {{
        const top = document.getElementById("{target}").getBoundingClientRect().top;
        return top > 40 && top < innerHeight / 2;
    }}"""
    )
    other = page.locator(".asked:not(:has(details[open])) h2").first
    name = other.get_attribute("id")
    page.evaluate(f"location.hash = '#{name}'")
    page.wait_for_timeout(200)
    assert page.locator(f".asked:has(#{name}) > details[open]").count() == 0
    browser_checks.add(5)


@pytest.mark.parametrize(("language", "viewport"), [("zh", "phone"), ("en", "desktop")])
def test_open_all_answers(language, viewport, visit, browser_checks):
    page = visit(f"{language}/interview/{GROUP}/", viewport=VIEWPORTS[viewport])
    opener = page.locator(".filter button").last
    answers = page.locator(f"{SHOWN} > details[open]")
    for count, pressed in ((len(ROWS), "true"), (0, "false")):
        opener.click()
        assert answers.count() == count
        assert opener.get_attribute("aria-pressed") == pressed
        assert page.locator(f"{SHOWN} details details[open]").count() == 0
    assert page.locator(".filter button[aria-pressed=true]").count() == 1  # all levels
    opener.click()
    assert not axe_violations(page)
    browser_checks.add(5)


SMALL = """names => [...document.querySelectorAll(names)]
  .filter(e => e.checkVisibility())
  .map(e => [e.getBoundingClientRect().height, e.textContent.slice(0, 30)])
  .filter(([height]) => height < 44)"""
TOUCHED = """article :is(
    button, summary, .quiz label, .draw label, mock-interview label, textarea)"""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("path", [GROUP, QUIZ, "quiz", "mock", "sheet"])
def test_a_finger_meets_what_it_aims_at(path, language, visit, browser_checks):
    page = visit(f"{language}/interview/{path}/", viewport=VIEWPORTS["phone"])
    assert page.evaluate(SMALL, TOUCHED) == []
    for step in (".draw button", "mock-interview [type=submit]"):
        if page.locator(step).count():
            page.locator(step).click()
            assert page.evaluate(SMALL, TOUCHED) == []
    while page.locator("mock-interview .mock-main:visible").count():
        page.locator("mock-interview .mock-main").click()
        assert page.evaluate(SMALL, TOUCHED) == []
    browser_checks.add(2)
