"""The quiz in a browser: answers, scores, another try, tabs, the mixed round, paper."""

import json
import re

import pytest

from scripts.site.questions import interview, interview_pages
from scripts.site.questions.interview import LEVELS
from scripts.site.reading.source import LANGUAGES
from tests.browser.conftest import VIEWPORTS
from tests.browser.crawl import axe_violations
from tests.browser.test_interview import GROUP, ITEMS, QUIZ, SCORE
from tests.lanes import first_quick

pytestmark = pytest.mark.skipif(not interview.items(), reason="the quiz is empty")
EVERYTHING = {row["id"]: row for _, row in interview.items()}
ON_PAGE = [
    row for g, row in interview.items() if g in interview_pages.QUIZ_PAGES.get(QUIZ, ())
]
CHECK, AGAIN = "fieldset [type=submit]", "fieldset [type=button]"
STATE = "localStorage.getItem('norms-measured.quiz')"
DRAWN = "quiz-round .quiz:not([hidden])"
STATUS = "quiz-round > p"
SOURCE = ".draw [name=source]"


def choose(page, item, option) -> None:
    page.locator(f"#{item['id']} input[value={option}]").check()
    page.locator(f"#{item['id']} {CHECK}").click()


def wrong(item) -> str:
    return next(name for name in item["options"] if name != item["answer"])


def score(page) -> str:
    """The score of the group's items."""
    return page.locator(f"{SCORE} span").inner_text()


def test_quiz(visit, browser_checks):
    """Wrong and right answers, score, reload, the other language, reset."""
    page = visit(f"en/interview/{QUIZ}/", viewport=VIEWPORTS["phone"])
    first, second = ITEMS[:2]
    item = page.locator(f"#{first['id']}")
    item.locator(CHECK).click()
    assert item.locator("output").inner_text() == "Choose an option first."
    choose(page, first, wrong(first))
    assert item.locator("output").inner_text().startswith("Not right: it is ")
    assert item.locator("label.wrong, label.right").count() == 2
    assert item.locator("details").first.get_attribute("open") is not None
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert item.locator(f"input:enabled, {CHECK}:visible").count() == 0
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
    assert page.locator(f"#{first['id']} {CHECK}").is_visible()
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
    page.locator(f"#{ITEMS[0]['id']} {CHECK}").wait_for()
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
    item.locator(CHECK).wait_for()
    assert page.evaluate("window.stillHere") is True
    item.locator("input").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    assert item.locator("output").inner_text()
    page.keyboard.press("Enter")  # the focus is on the key's summary
    assert item.locator("details").first.get_attribute("open") is None
    browser_checks.add(3)


@pytest.mark.parametrize("kept", first_quick("'no JSON'", "'[1]'", None))
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


@pytest.mark.parametrize(("language", "viewport"), [("zh", "phone"), ("en", "desktop")])
def test_levels_are_shown_and_filtered(language, viewport, visit, browser_checks):
    page = visit(f"{language}/interview/{QUIZ}/", viewport=VIEWPORTS[viewport])
    words = interview_pages.WORDS[language]
    shown = page.locator(".quiz .level").all_inner_texts()
    assert shown == [words[row["level"]] for row in ON_PAGE]
    for level in LEVELS:
        page.locator(f".filter button[value={level}]").click()
        left = page.locator(".quiz:not([hidden]) .level").all_inner_texts()
        assert left == [words[r["level"]] for r in ON_PAGE if r["level"] == level]
    browser_checks.add(4)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_item_can_be_tried_again(language, visit, browser_checks):
    """The old answer counts until there is a new one."""
    page = visit(f"{language}/interview/{QUIZ}/")
    first = ITEMS[0]
    item = page.locator(f"#{first['id']}")
    assert item.locator(AGAIN).is_hidden()
    choose(page, first, wrong(first))
    before = score(page)
    item.locator(AGAIN).click()
    assert item.locator("input:focus").count() == 1
    assert item.locator("input:checked, .right, .wrong, details[open]").count() == 0
    assert item.locator("output").inner_text() == ""
    assert score(page) == before
    page.reload()
    item.locator("label.wrong").wait_for()
    item.locator(AGAIN).click()
    choose(page, first, first["answer"])
    assert item.locator("label.wrong").count() == 0
    counts = [int(n) for n in re.findall(r"\d+", score(page))]
    assert sorted(counts) == sorted([1, len(ITEMS), 1])
    browser_checks.add(6)


def test_two_tabs_share_their_answers(visit, browser_checks):
    page = visit(f"en/interview/{QUIZ}/")
    other = page.context.new_page()
    other.goto(page.url)
    first, second = ITEMS[:2]
    choose(page, first, first["answer"])
    other.locator(f"#{first['id']} label.right").wait_for()  # without a reload
    choose(other, second, wrong(second))
    page.locator(f"#{second['id']} label.wrong").wait_for()
    said = f"2 of {len(ITEMS)} answered, 1 right."
    assert score(page) == score(other) == said
    assert set(json.loads(page.evaluate(STATE))) == {first["id"], second["id"]}
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("quiz-score:has(button:visible) button").first.click()
    other.locator(f"#{first['id']} {CHECK}").wait_for()
    browser_checks.add(4)


def drawn(page) -> list[dict]:
    """The items of the round, in their order."""
    names = page.locator(DRAWN).evaluate_all("items => items.map(item => item.id)")
    return [EVERYTHING[name] for name in names]


@pytest.mark.parametrize(("language", "viewport"), [("zh", "phone"), ("en", "desktop")])
def test_a_mixed_round(language, viewport, visit, browser_checks):
    """Of all groups, at two levels; then only what was wrong; what is not answered."""
    page = visit(f"{language}/interview/quiz/", viewport=VIEWPORTS[viewport])
    start = page.locator(".draw [type=submit]")
    assert page.locator(DRAWN).count() == 0
    assert str(len(EVERYTHING)) in page.locator(".draw p").inner_text()
    page.locator(".draw [value=forty]").check()
    [count] = re.findall(r"\d+", page.locator(".draw p").inner_text())
    assert 0 < int(count) < len(EVERYTHING) and "?from=forty" in page.url
    page.locator(".draw [value=every]").check()
    page.locator(".draw [value=researcher]").uncheck()
    page.locator(".draw [type=number]").fill("12")
    assert not axe_violations(page)
    start.click()
    first, second, *rest = drawn(page)
    assert len(rest) == 10 and page.locator(f"{DRAWN} input:focus").count() == 1
    groups = {g for g, row in interview.items() if row in (first, second, *rest)}
    assert len(groups) > 1
    assert "researcher" not in {row["level"] for row in (first, second, *rest)}
    choose(page, first, first["answer"])
    choose(page, second, wrong(second))
    counts = re.findall(r"\d+", page.locator(STATUS).inner_text())
    assert sorted(map(int, counts)) == [1, 2, 12]
    assert not axe_violations(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("quiz-round > .md-button").click()
    page.locator(f"{SOURCE}[value=missed]").check()
    start.click()
    assert drawn(page) == [second]
    item = page.locator(f"#{second['id']}")
    assert item.locator("input:checked, .wrong, .right, details[open]").count() == 0
    choose(page, second, second["answer"])
    page.reload()
    page.locator(f"{SOURCE}[value=missed]").check()
    assert start.is_disabled()
    page.locator(f"{SOURCE}[value=fresh]").check()
    left = page.locator(".draw p").inner_text()
    assert re.findall(r"\d+", left) == [str(len(EVERYTHING) - 2)]
    total = page.locator("quiz-score[reset] span").inner_text()
    assert sorted(map(int, re.findall(r"\d+", total))) == [2, 2, len(EVERYTHING)]
    browser_checks.add(12)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_round_leads_to_the_evidence(language, visit, browser_checks):
    page = visit(f"{language}/interview/quiz/")
    page.locator(".draw [type=submit]").click()
    row = drawn(page)[0]
    item = page.locator(f"#{row['id']}")
    assert item.locator("pre").count() == 0
    choose(page, row, row["answer"])
    item.locator("details a").last.click()
    page.wait_for_url(f"**/interview/quiz-*/#{row['id']}")
    page.locator(f"#{row['id']} pre").wait_for(state="attached")  # the round has none
    page.locator(f"#{row['id']} > details[open]").wait_for()
    browser_checks.add(3)


def test_without_scripts_there_is_no_round(visit, browser_checks):
    page = visit("en/interview/quiz/", java_script_enabled=False)
    assert page.locator(".quiz:visible, quiz-round form").count() == 0
    browser_checks.add()


@pytest.mark.parametrize("language", LANGUAGES)
def test_on_paper_with_and_without_keys(language, visit, browser_checks):
    page = visit(f"{language}/interview/{QUIZ}/")
    page.evaluate("() => { window.print = () => { window.printed += 1 } }")
    page.evaluate("window.printed = 0")
    choose(page, ITEMS[0], ITEMS[0]["answer"])
    for keys in (False, True):
        page.emulate_media(media="screen")
        page.locator("quiz-paper button").nth(int(keys)).click()
        assert page.evaluate("window.printed") == 1 + keys
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.locator(".quiz details:not([open])").first.wait_for(state="detached")
        page.emulate_media(media="print")
        item = page.locator(f"#{ITEMS[1]['id']}")
        assert item.locator("legend").is_visible()
        assert item.locator("details li").first.is_visible() is keys
        assert page.locator(".quiz :is(pre, output, button):visible").count() == 0
        assert page.locator(".filter:visible, quiz-score:visible").count() == 0
        sheets = len(re.findall(rb"/Type /Page\b", page.pdf(prefer_css_page_size=True)))
        assert len(ON_PAGE) / 16 < sheets <= len(ON_PAGE) / (5 if keys else 8)
    browser_checks.add(6)
