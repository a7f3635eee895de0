"""The home page's first screen: the search, the token, the claims."""

import pytest

from tests.browser.conftest import VIEWPORTS, awake, hold_timers, pause, run_timers
from tests.browser.crawl import Watch, settle
from tests.browser.page_length import WINDOW


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


SEEN = """paths => paths.filter(
  path => getComputedStyle(path).visibility === "visible").length"""


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("bet", "right"), [(0, True), (1, False), (2, False)])
def test_a_bet_opens_the_maps(bet, right, language, home, browser_checks):
    """Nothing is shown before; then the maps, and the verdict for the prompt."""
    page = home(language, viewport=VIEWPORTS["phone"], reduced_motion="reduce")
    card = page.locator("gradient-bet")
    verdict, prompt = card.locator(".outcome"), card.locator(".prompt")
    cells = card.locator("svg path")
    assert prompt.is_visible() and verdict.is_hidden()
    assert cells.evaluate_all(SEEN) == 0
    card.locator(".bets button").nth(bet).click()
    assert verdict.is_visible() and prompt.is_hidden()
    says = verdict.locator("strong").inner_text()
    assert (says.endswith(("right.", "押对了。"))) is right
    assert cells.evaluate_all(SEEN) == cells.count() > 0
    card.locator(".next button").click()
    assert prompt.is_visible() and verdict.is_hidden()
    browser_checks.add(5)


def test_a_run_takes_its_time_and_ends(home, browser_checks):
    """By keyboard, with motion: the verdict comes when both maps are open."""
    page = home("en")
    card = page.locator("gradient-bet")
    card.locator(".bets button").first.focus()
    page.keyboard.press("Enter")
    assert card.get_attribute("class") == "running"
    settle(page)  # to its end
    card.locator(".outcome").wait_for()
    assert card.get_attribute("class") == ""
    assert page.evaluate("document.activeElement.textContent").endswith("right.")
    browser_checks.add(3)


@pytest.mark.parametrize("viewport", VIEWPORTS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_screen_holds_the_search_and_the_bet(
    language, viewport, home, browser_checks
):
    page = home(language, viewport=VIEWPORTS[viewport])
    parts = ("h1", "form", "gradient-bet .bets")
    boxes = [page.locator(f".home {part}").bounding_box() for part in parts]
    if viewport == "desktop":
        boxes += [link.bounding_box() for link in page.locator(".home li").all()]
    for box in boxes:
        assert box["y"] + box["height"] <= VIEWPORTS[viewport]["height"]
    for button in page.locator("gradient-bet .bets button").all():
        assert button.bounding_box()["height"] >= 44
    browser_checks.add(len(boxes))


@pytest.mark.parametrize(
    ("language", "kept"), [("en", "did not change"), ("zh", "不变")]
)
def test_who_moves(language, kept, home, browser_checks):
    page = home(language, viewport=VIEWPORTS["phone"])
    add, times = page.locator("one-token label input").all()
    says = page.locator("one-token .says span")
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
    assert page.locator("open-search a").get_attribute("href") == "#contents"
    assert page.locator("open-search input").count() == 0
    browser_checks.add(4)


EXAMPLE = {"en": "why does fp16 RMSNorm overflow", "zh": "fp16 的 RMSNorm 为什么会溢出"}
HIT = ".md-search-result__link[href*='low-precision']"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "viewport", [WINDOW, VIEWPORTS["phone"]], ids=["wide", "phone"]
)
def test_the_search_is_seen_at_once(language, viewport, home, browser_checks):
    """A field, as high as a finger, with a name and an example; nothing fetched yet."""
    page = home(language, viewport=viewport)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    field = page.get_by_role("search").get_by_role("searchbox")
    box = field.bounding_box()
    assert box["y"] + box["height"] < viewport["height"]
    assert box["height"] >= 44 and box["width"] >= 200
    assert field.get_attribute("aria-label")
    assert field.get_attribute("placeholder") == EXAMPLE[language]
    awake(page)
    assert not [url for url in asked if "search" in url]
    browser_checks.add(4)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_search_by_keyboard(language, home, browser_checks):
    """Tab reaches the field, with a ring; Enter asks, and Escape closes the answer."""
    page = home(language)
    field = page.locator("open-search input")
    page.locator("h1").click()
    page.keyboard.press("Tab")
    while field.evaluate("field => field !== document.activeElement"):
        page.keyboard.press("Tab")
    assert field.evaluate("field => getComputedStyle(field).outlineStyle") == "solid"
    page.keyboard.type({"en": "overflow", "zh": "溢出"}[language])
    page.keyboard.press("Enter")
    page.locator(HIT).first.wait_for()
    pause(page, 200)  # or the field would open it once more
    page.keyboard.press("Escape")
    page.locator("#__search:not(:checked)").wait_for(state="attached")
    browser_checks.add(3)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_empty_field_asks_its_example(language, home, browser_checks):
    page = home(language, viewport=VIEWPORTS["phone"])
    page.locator("open-search button").click()
    page.locator(HIT).first.wait_for()
    query = page.locator("[data-md-component=search-query]")
    assert query.input_value() == EXAMPLE[language]
    browser_checks.add(2)


ASK_ON_ARRIVAL = """() => new Promise((asked) => {
  new MutationObserver((_, seen) => {
    const button = document.querySelector("open-search button");
    if (!button) return;
    seen.disconnect();
    button.click();
    asked();
  }).observe(document.body, { childList: true, subtree: true });
  document.querySelector(".md-header__button.md-logo").click();
})"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_search_after_instant_navigation(language, home, browser_checks):
    """Asked before the theme, 125 ms after an arrival, shuts its search."""
    page = home(language)
    awake(page)
    page.locator(".first a[href$='rms-norm/']").click()
    page.wait_for_selector("h1#rms-norm")
    page.evaluate(ASK_ON_ARRIVAL)
    page.locator(HIT).first.wait_for()
    browser_checks.add(1)


def test_a_feature_is_dragged(home, browser_checks):
    """Both outputs answer while a bar is in the hand."""
    page = home("en")
    bar = page.locator("one-token .features input").first
    shown = page.locator("one-token .answer b")
    before = shown.evaluate_all("bars => bars.map(bar => bar.style.height)")
    settle(page)
    bar.scroll_into_view_if_needed()  # the mouse does not scroll
    box = bar.bounding_box()
    middle = box["x"] + box["width"] / 2
    hold_timers(page)
    page.mouse.move(middle, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(middle, box["y"] + 5, steps=4)
    after = shown.evaluate_all("bars => bars.map(bar => bar.style.height)")
    page.mouse.up()
    assert float(bar.input_value()) > 2
    assert all(old != new for old, new in zip(before, after, strict=True))
    says = page.locator("one-token .says span").inner_text()
    assert says.startswith("Feature 1 at ") and says.count("changed by up to") == 2
    told = page.locator("one-token output")
    assert told.text_content() == ""  # not on every move
    run_timers(page)
    assert told.text_content() == says  # but once the hand is still
    browser_checks.add(4)
