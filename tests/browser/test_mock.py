"""The mock interview in a browser: its clock, its keys, its memory, without scripts."""

import json
import re
from datetime import datetime, timedelta

import pytest

from scripts.site.questions import interview, interview_pages
from scripts.site.questions import mock as mock_list
from tests.browser.conftest import VIEWPORTS, awake
from tests.browser.crawl import axe_violations
from tests.lanes import first_quick

BANK = interview.bank()
PATH = "interview/mock/"
LANGUAGES = ("zh", "en")
START = "mock-interview button[type=submit]"
QUESTION = "h3.mock-question"
ANSWER = ".mock-answer"
WRITTEN = "mock-interview textarea"
TIMER = ".mock-timer"
VOICE = ".mock-voice"
STORED = "localStorage['norms-measured.mock-unfinished']"
PARTS = ("h3", ".mock-where", ".mock-answer")
NEXT = {language: words["follow_up"] for language, words in mock_list.WORDS.items()}
NOON = datetime(2026, 1, 1, 12)
STORE_REFUSED = (
    "Storage.prototype.getItem = Storage.prototype.setItem = () => { throw 1 }"
)


@pytest.fixture
def mock(site, open_page):
    """mock(language, **options of the context): the page, its clock in our hands."""

    def opened(language="en", **options):
        page = open_page(**options)
        page.clock.install(time=NOON)
        page.goto(f"{site[1]}{language}/{PATH}")
        page.locator(START).wait_for()
        return page

    return opened


def begin(page, number=2, minutes=2, follow=False):
    page.locator("input[name=follow]").set_checked(follow)
    page.locator("input[name=number]").fill(str(number))
    page.locator("input[name=minutes]").fill(str(minutes))
    page.locator(START).click()


def rate(page, rating):
    page.locator("button.mock-main").click()
    page.locator(f"button.mock-{rating}").click()


def focused(page) -> str:
    return page.evaluate("document.activeElement.className")


@pytest.mark.parametrize(("language", "viewport"), [("zh", "phone"), ("en", "desktop")])
def test_an_interview(language, viewport, mock, browser_checks):
    page = mock(language, viewport=VIEWPORTS[viewport])
    assert str(len(BANK)) in page.locator(".mock-fitting").inner_text()
    drawn_from = "document.querySelector('mock-interview').questions.map(q => q.id)"
    assert page.evaluate(drawn_from) == [row["id"] for _, row in BANK]
    begin(page, number=3)
    assert page.locator(ANSWER).count() == 0
    problems = axe_violations(page)
    page.locator("button.mock-main").click()
    assert len(page.locator(ANSWER).inner_text()) > 100
    problems += axe_violations(page)
    page.locator("button.mock-known").click()
    rate(page, "partly")
    rate(page, "revise")
    heads = page.locator("mock-interview h4").all_inner_texts()
    assert [re.findall(r"\d+$", head) for head in heads] == 3 * [["1"]]
    links = page.locator("mock-interview ul a:visible")
    for link in links.all():
        assert f"/{language}/interview/" in link.evaluate("a => a.href")
    assert links.count() == 3
    problems += axe_violations(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not problems, "\n".join(problems)
    browser_checks.add(6)


@pytest.mark.parametrize("language", LANGUAGES)
def test_by_keyboard_alone(language, mock, browser_checks):
    page = mock(language)
    keys = page.keyboard
    page.locator("input[name=follow]").uncheck()
    page.locator("mock-interview input").first.focus()
    while page.evaluate("document.activeElement.name") != "number":
        keys.press("Tab")
    keys.type("2")
    keys.press("Enter")
    assert "mock-question" in focused(page)
    first = page.locator(QUESTION).inner_text()
    keys.press("Escape")
    before = page.locator(TIMER).inner_text()
    page.clock.run_for(30_000)
    assert page.locator(TIMER).inner_text() == before
    keys.press("Escape")
    page.clock.run_for(30_000)
    assert page.locator(TIMER).inner_text() != before
    described = "document.activeElement.ariaDescribedByElements[0].className"
    assert page.evaluate(described) == "mock-where"
    keys.press("Enter")
    assert "mock-answer" in focused(page)
    assert page.locator(VOICE).inner_text() == ""
    while "mock-revise" not in focused(page):
        keys.press("Tab")
    ring = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(ring) == "solid"
    keys.press("Space")
    assert "mock-question" in focused(page)
    assert page.locator(QUESTION).inner_text() != first
    keys.press("Enter")
    while "mock-known" not in focused(page):
        keys.press("Tab")
    keys.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "H3"
    assert page.locator("mock-interview ul a:visible").first.inner_text() == first
    browser_checks.add(6)


@pytest.mark.parametrize(("language", "viewport"), [("zh", "phone"), ("en", "desktop")])
def test_the_follow_up_is_asked_after_the_answer(
    language, viewport, mock, browser_checks
):
    """On the same clock, by keyboard; where a reload cut it off it goes on."""
    page = mock(language, viewport=VIEWPORTS[viewport])
    keys = page.keyboard
    begin(page, number=2, minutes=3, follow=True)
    question = page.locator(QUESTION).inner_text()
    page.clock.run_for(60_000)
    go_on = page.locator("button.mock-go-on")
    shown = ["question"]

    def state() -> tuple:
        texts = (page.locator(f"mock-interview {s}").all_inner_texts() for s in PARTS)
        return (*texts, page.locator(TIMER).inner_text())

    for stage in range(4):
        if stage:
            if stage == 2:  # the others are on the question, whose Enter shows
                while "mock-main" not in focused(page):
                    keys.press("Tab")
            keys.press("Enter")
        if stage == 2:
            page.clock.run_for(30_000)
        assert ("mock-answer" if stage % 2 else "mock-question") in focused(page)
        asked_next = page.locator(QUESTION).inner_text().startswith(NEXT[language])
        assert asked_next is (stage > 1)
        assert (page.locator(ANSWER).count() == 1) is bool(stage % 2)
        assert (page.locator("button.mock-known").count() == 1) is (stage == 3)
        assert page.locator(f"{ANSWER} details").count() == 0
        assert not axe_violations(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.wait_for_function(f"JSON.parse({STORED}).shown === {stage}")
        if stage:
            before = state()
            page.reload()
            go_on.click()
            assert state()[:-1] == before[:-1]
            if stage in (1, 3):
                assert state() == before
        shown.append(page.locator(QUESTION).inner_text())
    left = re.search(r"(\d+):(\d\d)$", page.locator(TIMER).inner_text())
    assert 60 * int(left[1]) + int(left[2]) <= 120  # it did not begin anew
    page.locator("button.mock-partly").click()
    assert page.locator(QUESTION).inner_text() not in (question, *shown)
    assert page.locator(ANSWER).count() == 0
    browser_checks.add(20)


@pytest.mark.parametrize(("language", "viewport"), [("zh", "phone"), ("en", "desktop")])
def test_a_written_answer_is_beside_ours(language, viewport, mock, browser_checks):
    """Kept over a reload and in the summary; where nothing is written, no field."""
    page = mock(language, viewport=VIEWPORTS[viewport])
    begin(page, number=1, follow=True)
    said = ["Because <b>x</b> & y,\nand z.", "第二个回答"]
    for turn, text in enumerate(said):
        page.locator(WRITTEN).fill(text)
        page.reload()
        page.locator("button.mock-go-on").click()
        assert page.locator(WRITTEN).input_value() == text
        page.locator("button.mock-main").click()
        boxes = [page.locator(name).bounding_box() for name in (WRITTEN, ANSWER)]
        if viewport == "desktop":
            assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
        else:
            assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
        assert not axe_violations(page)
        if not turn:
            page.locator("button.mock-main").click()
            assert page.locator(WRITTEN).input_value() == ""
    page.locator("button.mock-known").click()
    written = page.locator(".mock-said").all_inner_texts()
    assert [text in line for text, line in zip(said, written, strict=True)] == 2 * [
        True
    ]
    page.locator("mock-interview button").last.click()  # a new interview
    begin(page, number=1)
    page.locator("button.mock-main").click()
    assert page.locator(WRITTEN).count() == 0
    browser_checks.add(10)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_summary_can_be_printed(language, mock, browser_checks):
    """With the answers to what was not known, and without the rest of the page."""
    page = mock(language)
    begin(page, number=6, follow=True)
    for rating in 2 * ("known", "partly", "revise"):
        page.locator(WRITTEN).fill("Written.")
        for _ in range(3):
            page.locator("button.mock-main").click()
        page.locator(f"button.mock-{rating}").click()
    page.evaluate("() => { window.print = () => { window.printed = true } }")
    names = {"en": "Print the summary", "zh": "打印小结"}
    page.get_by_role("button", name=names[language]).click()
    assert page.evaluate("window.printed") is True
    papers = page.locator(".mock-paper")
    assert not any(paper.is_visible() for paper in papers.all())
    page.emulate_media(media="print")
    filled = [paper for paper in papers.all() if paper.inner_text()]
    assert len(filled) == 2 * 4 and all(paper.is_visible() for paper in filled)
    assert page.locator(".mock-said:visible").count() == 6
    assert page.locator("article :is(button, h2, .admonition):visible").count() == 0
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type /Page\b", printed)) <= 3
    browser_checks.add(5)


def test_the_clock_speaks_twice(mock, browser_checks):
    page = mock()
    page.clock.pause_at(NOON + timedelta(hours=1))  # from here it moves with us alone
    begin(page)
    assert page.locator(TIMER).inner_text().endswith("2:00")
    page.evaluate(
        f"""() => {{
        window.said = [];
        const voice = document.querySelector("{VOICE}");
        const note = () => said.push(voice.textContent);
        new MutationObserver(note).observe(voice, {{ childList: true }});
    }}"""
    )
    for _ in range(150):
        page.clock.run_for(1000)
    assert page.evaluate("said") == ["One minute left.", "Time is up."]
    assert page.locator(TIMER).inner_text() == "Over time by: 0:30"
    assert page.locator(TIMER).get_attribute("aria-live") is None
    browser_checks.add(3)


def test_marks_are_kept_on_the_device(mock, browser_checks):
    page = mock("zh")
    marked = page.locator("input[value=marked]")
    assert marked.is_disabled()
    begin(page, number=1)
    question = page.locator(QUESTION).inner_text()
    rate(page, "revise")
    page.reload()
    marked.check()
    begin(page, number=10)
    assert page.locator(QUESTION).inner_text() == question
    rate(page, "known")
    page.reload()
    assert marked.is_disabled()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="删除我的标记").click()
    assert page.evaluate("localStorage['norms-measured.mock']") == "{}"
    browser_checks.add(3)


@pytest.mark.parametrize(
    "kept", first_quick("no JSON", "[1]", '"text"', '{"gone": "revise"}')
)
def test_damaged_marks(kept, mock, browser_checks):
    page = mock()
    page.evaluate("kept => localStorage['norms-measured.mock'] = kept", kept)
    page.reload()
    assert page.locator("input[value=marked]").is_disabled()  # it would draw nothing
    assert "on this device only" in page.locator(".mock-note").inner_text()
    begin(page, number=1)
    rate(page, "revise")
    page.reload()
    page.locator("input[value=marked]").check()
    begin(page)
    assert page.locator(QUESTION).count() == 1
    browser_checks.add(3)


def test_a_reload_goes_on(mock, browser_checks):
    page = mock()
    go_on = page.locator("button.mock-go-on")
    assert go_on.count() == 0
    begin(page, number=3)
    rate(page, "known")
    question = page.locator(QUESTION).inner_text()
    page.reload()
    assert go_on.inner_text() == "Go on with question 2 of 3"
    assert not axe_violations(page)
    go_on.click()
    assert page.locator(QUESTION).inner_text() == question
    assert focused(page) == "mock-question"
    rate(page, "partly")
    rate(page, "revise")
    said = page.locator("mock-interview").inner_text()
    assert "3 questions rated" in said
    page.reload()
    page.get_by_role("button", name="Summary of the last interview").click()
    assert page.locator("mock-interview").inner_text() == said
    page.reload()
    begin(page, number=2)
    page.locator(QUESTION).wait_for()
    page.reload()
    assert go_on.inner_text() == "Go on with question 1 of 2"
    browser_checks.add(8)


@pytest.mark.parametrize(
    "kept",
    first_quick(
        "no JSON",
        "null",
        '{"asked": ["gone"], "rated": [], "at": 0, "limit": 9, "spent": 0}',
        '{"asked": [], "rated": [], "at": 0, "limit": 9, "spent": 0}',
        '{"asked": [], "rated": [], "at": 0, "limit": 9, "spent": 0, "over": true}',
        '{"asked": ["gone"], "rated": [], "at": 0, "limit": 9, "spent": 0, "shown": 2}',
    ),
)
def test_a_damaged_interview_is_not_offered(kept, mock, browser_checks):
    page = mock()
    page.evaluate("kept => localStorage['norms-measured.mock-unfinished'] = kept", kept)
    page.reload()
    page.locator(START).wait_for()
    assert page.locator("button.mock-go-on").count() == 0
    begin(page, number=1)
    assert page.locator(QUESTION).count() == 1
    browser_checks.add(2)


@pytest.mark.parametrize(
    "rest", first_quick({}, {"shown": "much", "time": "long", "said": "no"})
)
def test_an_interview_that_says_less_or_worse_of_its_question(
    rest, mock, browser_checks
):
    """As an older version of the page kept it, or damaged: it goes on all the same."""
    page = mock()
    names = [row["id"] for _, row in BANK[:2]]
    kept = {"asked": names, "rated": [[names[0], "known"]], "at": 1} | rest
    kept |= {"limit": 60, "spent": 5}
    page.evaluate(f"kept => {STORED} = kept", json.dumps(kept))
    page.reload()
    page.locator("button.mock-go-on").click()
    assert "NaN" not in page.locator("mock-interview").inner_text()
    page.locator("button.mock-main").click()
    page.locator("button.mock-known").click()
    assert "2 questions rated" in page.locator("mock-interview").inner_text()
    browser_checks.add(3)


def test_draws_what_was_known_partly_or_not_asked(mock, browser_checks):
    page = mock("zh")
    weak, fresh = (page.locator(f"input[value={name}]") for name in ("weak", "fresh"))
    assert weak.is_disabled() and fresh.is_enabled()
    begin(page, number=3)
    for rating in ("known", "partly", "revise"):
        rate(page, rating)
    page.reload()
    weak.check()
    assert page.locator(".mock-fitting").inner_text() == "符合条件的题：2 道。"
    fresh.check()
    left = len(BANK) - 3
    assert page.locator(".mock-fitting").inner_text() == f"符合条件的题：{left} 道。"
    browser_checks.add(3)


def test_draws_from_the_forty(mock, browser_checks):
    """As the address says; a choice is kept there."""
    page = mock()
    fitting = page.locator(".mock-fitting")
    asked = sum("asked" in row for _, row in BANK)
    page.locator("input[value=public]").check()
    assert fitting.inner_text() == f"{asked} questions fit."
    page.goto(page.url.replace("public", "forty"))
    assert fitting.inner_text() == f"{interview_pages.SHEET} questions fit."
    page.locator("input[value=every]").check()
    assert fitting.inner_text() == f"{len(BANK)} questions fit."
    assert page.url.endswith(PATH)
    browser_checks.add(4)


@pytest.mark.slow
def test_marks_of_two_tabs(mock, browser_checks):
    page = mock()
    other = page.context.new_page()
    other.goto(page.url)
    for tab, level in ((page, "screening"), (other, "engineer")):
        tab.locator(f"input[name=level]:not([value={level}])").first.uncheck()
        tab.locator(f"input[name=level]:not([value={level}])").last.uncheck()
        begin(tab, number=1)
        rate(tab, "revise")
    page.reload()
    page.locator("input[value=marked]").check()
    assert page.locator(".mock-fitting").inner_text() == "2 questions fit."
    browser_checks.add()


def test_where_nothing_can_be_kept(mock, open_page, site, browser_checks):
    page = open_page()
    page.add_init_script(STORE_REFUSED)
    page.goto(f"{site[1]}en/{PATH}")
    begin(page, number=1)
    rate(page, "revise")
    assert "keeps nothing" in page.locator(".mock-note").inner_text()
    page.get_by_role("button", name="New interview").click()
    assert page.locator("input[value=marked]").is_enabled()
    browser_checks.add()


@pytest.mark.parametrize("language", LANGUAGES)
def test_draws_by_level_and_group(language, mock, browser_checks):
    page = mock(language)
    groups = page.locator("input[name=group]")
    page.locator("mock-interview fieldset button").last.click()
    assert page.locator(START).is_disabled()
    groups.last.check()
    page.locator("input[value=screening]").uncheck()
    chosen, title = BANK[-1][0], interview_pages.subject(BANK[-1][0], language)
    fitting = [r for g, r in BANK if g == chosen and r["level"] != "screening"]
    assert str(len(fitting)) in page.locator(".mock-fitting").inner_text()
    begin(page, number=len(fitting))
    for _ in fitting:
        where = page.locator(".mock-where").inner_text()
        assert (
            title in where and interview_pages.WORDS[language]["screening"] not in where
        )
        rate(page, "known")
    assert page.locator(QUESTION).count() == 0
    browser_checks.add(3)


@pytest.mark.slow
def test_after_instant_navigation(site, open_page, browser_checks):
    page = open_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(error))
    page.goto(f"{site[1]}en/interview/")
    awake(page)
    for _ in range(2):
        page.locator(".md-content a[href*='mock']").first.click()
        begin(page)
        assert "mock-question" in focused(page)
        page.locator(".md-nav a[href$='/interview/']").first.evaluate("a => a.click()")
        page.locator("h1#interview").wait_for()
    assert not errors
    browser_checks.add()


def test_without_scripts_it_is_a_list(site, open_page, browser_checks):
    page = open_page(java_script_enabled=False)
    page.goto(f"{site[1]}en/{PATH}")
    questions = page.locator(".mock-list section > details")
    assert questions.count() == len(BANK)
    assert page.locator(".mock-list details").count() == 2 * len(BANK)
    questions.first.locator("summary").first.click()
    assert questions.first.locator("p").first.is_visible()
    follow_up = questions.first.locator("details")
    assert follow_up.locator("p").first.is_hidden()
    follow_up.locator("summary").click()
    assert follow_up.locator("p").first.is_visible()
    browser_checks.add(3)
