"""The interview section in a browser: filter, quiz, sheet, search; whole without
scripts."""

import json
import re

import pytest

from scripts.site import asked, interview
from scripts.site.interview import GROUPS, LEVELS
from scripts.site.source import LANGUAGES
from tests.browser.conftest import VIEWPORTS
from tests.browser.crawl import Watch, axe_violations
from tests.browser.test_search import results

pytestmark = pytest.mark.skipif(
    not (interview.bank() and interview.items()), reason="the bank is empty"
)
GROUP = max(GROUPS, key=lambda group: len(interview.questions(group)))
ROWS = interview.questions(GROUP)
SCREENING = sum(row["level"] == LEVELS[0] for row in ROWS)
SHOWN = ".asked:not([hidden])"
QUIZ = next((p for p, of in asked.QUIZ_PAGES.items() if GROUP in of), "")
ITEMS = interview.quiz(GROUP)
ANSWERS = " ".join(f"{item['id']}:{item['answer']}" for item in ITEMS)
SCORE = f"quiz-score[data-items='{ANSWERS}']"
STATE = "localStorage.getItem('norms-measured.quiz')"


@pytest.fixture
def visit(site, open_page):
    """visit(path, **context options) -> the page, loaded and watched."""
    watches = []

    def visit(path, **options):
        page = open_page(**options)
        watches.append(Watch(page, site[1]))
        page.goto(site[1] + path)
        page.wait_for_load_state("networkidle")
        return page

    yield visit
    assert not [problem for watch in watches for problem in watch.problems]


def choose(page, item, option) -> None:
    page.locator(f"#{item['id']} input[value={option}]").check()
    page.locator(f"#{item['id']} fieldset button").click()


def wrong(item) -> str:
    return next(name for name in item["options"] if name != item["answer"])


def score(page) -> str:
    """The score of the group's items."""
    return page.locator(f"{SCORE} span").inner_text()


@pytest.mark.parametrize(("language", "viewport"), [("zh", "phone"), ("en", "desktop")])
def test_filter_by_mouse(language, viewport, visit, browser_checks):
    page = visit(f"{language}/interview/{GROUP}/", viewport=VIEWPORTS[viewport])
    button = page.locator(".filter button[value=screening]")
    button.click()
    assert page.locator(SHOWN).count() == SCREENING < len(ROWS)
    assert button.get_attribute("aria-pressed") == "true"
    other = next(row["id"] for row in ROWS if row["level"] != LEVELS[0])
    page.evaluate(f"location.hash = '#{other}'")
    page.locator(f"#{other}").wait_for(state="visible")
    assert page.locator(SHOWN).count() == len(ROWS)
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
    label = asked.WORDS[language]["follow_up"]
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
    assert page.locator(".filter").count() == 0
    page.goto(page.url.replace(GROUP, QUIZ))
    assert page.locator("fieldset button, output").count() == 0
    key = page.locator(f"#{ITEMS[0]['id']} details").first
    key.locator("summary").first.click()
    key.locator("li").last.wait_for(state="visible")
    items = page.locator(SCORE)
    assert items.inner_text() == f"{len(ITEMS)} items"
    browser_checks.add(4)


def test_quiz(visit, browser_checks):
    """Wrong and right answers, score, reload, the other language, reset."""
    page = visit(f"en/interview/{QUIZ}/", viewport=VIEWPORTS["phone"])
    first, second = ITEMS[:2]
    item = page.locator(f"#{first['id']}")
    item.locator("fieldset button").click()
    assert item.locator("output").inner_text() == "Choose an option first."
    choose(page, first, wrong(first))
    assert item.locator("output").inner_text().startswith("Not right: it is ")
    assert item.locator("label.wrong, label.right").count() == 2
    assert item.locator("details").first.get_attribute("open") is not None
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert item.locator("input:enabled, fieldset button:visible").count() == 0
    choose(page, second, second["answer"])
    assert page.locator(f"#{second['id']} output").inner_text() == "Right."
    said = f"2 of {len(ITEMS)} answered, 1 right."
    assert score(page) == said
    assert not axe_violations(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.reload()
    page.locator(f"#{first['id']} label.wrong").wait_for()
    assert score(page) == said
    page.goto(page.url.replace(f"{QUIZ}/", "quiz/"))
    page.locator("quiz-score button").wait_for()
    assert score(page) == said
    page.goto(page.url.replace("/en/", "/zh/"))
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.locator("quiz-score button").click()
    assert page.evaluate(STATE) != "{}"
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("quiz-score button").click()
    assert page.evaluate(STATE) == "{}"
    page.goto(page.url.replace("quiz/", f"{QUIZ}/"))
    assert page.locator(f"#{first['id']} fieldset button").is_visible()
    assert page.locator("label.wrong, label.right").count() == 0
    browser_checks.add(13)


def test_reset_of_a_group(visit, browser_checks):
    page = visit(f"zh/interview/{QUIZ}/")
    group = page.locator(f"quiz-score[data-items^='{ITEMS[0]['id']}']")
    assert group.locator("button").is_hidden()  # nothing to delete
    choose(page, ITEMS[0], ITEMS[0]["answer"])
    page.once("dialog", lambda dialog: dialog.accept())
    group.locator("button").click()
    assert group.locator("span:focus").count() == 1
    assert score(page) == f"已答 0/{len(ITEMS)} 题，答对 0 题。"
    assert page.locator(f"#{ITEMS[0]['id']} input:checked").count() == 0
    assert page.locator(f"#{ITEMS[0]['id']} input:enabled").count() >= 3
    browser_checks.add(5)


def test_answer_of_an_option_that_is_gone(visit, browser_checks):
    """A new version of an item is asked anew, and the score knows it."""
    page = visit(f"en/interview/{QUIZ}/")
    kept = json.dumps({ITEMS[0]["id"]: {"option": "no-longer-there", "right": True}})
    page.evaluate("kept => localStorage.setItem('norms-measured.quiz', kept)", kept)
    page.reload()
    page.locator(f"#{ITEMS[0]['id']} fieldset button").wait_for()
    assert score(page) == f"0 of {len(ITEMS)} answered, 0 right."
    browser_checks.add()


def test_a_corrected_key_corrects_an_old_score(visit, browser_checks):
    page = visit(f"en/interview/{QUIZ}/")
    first = ITEMS[0]
    kept = json.dumps({first["id"]: {"option": wrong(first), "right": True}})
    page.evaluate("kept => localStorage.setItem('norms-measured.quiz', kept)", kept)
    page.reload()
    page.locator(f"#{first['id']} label.wrong").wait_for()
    assert score(page) == f"1 of {len(ITEMS)} answered, 0 right."
    browser_checks.add()


def test_quiz_by_keyboard_after_instant_navigation(visit, browser_checks):
    page = visit("en/interview/quiz/")
    page.evaluate("window.stillHere = true")
    page.locator(f".md-content a[href*='{QUIZ}/#{GROUP}']").click()
    item = page.locator(f"#{ITEMS[0]['id']}")
    item.locator("fieldset button").wait_for()
    assert page.evaluate("window.stillHere") is True
    item.locator("input").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    assert item.locator("output").inner_text()
    page.keyboard.press("Enter")  # the focus is on the key's summary
    assert item.locator("details").first.get_attribute("open") is None
    browser_checks.add(3)


@pytest.mark.parametrize("kept", ["'no JSON'", "'[1]'", None])
def test_quiz_where_nothing_can_be_kept(kept, site, open_page, browser_checks):
    page = open_page()
    if kept is None:  # as a private window may
        page.add_init_script(
            "Storage.prototype.getItem = Storage.prototype.setItem = () => {"
            " throw new DOMException('no', 'SecurityError') }"
        )
    else:
        page.add_init_script(f"localStorage.setItem('norms-measured.quiz', {kept})")
    page.goto(f"{site[1]}en/interview/{QUIZ}/")
    choose(page, ITEMS[0], ITEMS[0]["answer"])
    choose(page, ITEMS[1], ITEMS[1]["answer"])
    assert score(page) == f"2 of {len(ITEMS)} answered, 2 right."
    browser_checks.add()


@pytest.mark.parametrize("language", LANGUAGES)
def test_sheet_prints_in_columns(language, visit, browser_checks):
    page = visit(f"{language}/interview/sheet/")
    page.evaluate("window.print = () => { window.printed = true }")
    page.locator("print-button button").click()
    assert page.evaluate("window.printed") is True
    assert page.locator(".sheet > ol > li").count() == len(asked.chosen())
    page.emulate_media(media="print")
    style = "getComputedStyle(document.querySelector('.sheet')).columnCount"
    assert page.evaluate(style) == "2"
    assert page.locator(".md-header:visible, print-button:visible").count() == 0
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type /Page\b", printed)) == 2  # one leaf, both sides
    browser_checks.add(5)


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
