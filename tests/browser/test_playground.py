"""The playground in Chromium: nothing moves before a bet, then runs train and end."""

import pytest

from scripts.site.pictures import explore, playground
from tests.browser.conftest import VIEWPORTS
from tests.browser.crawl import Watch, axe_violations, fits, turn

PATH = "playground/"
SHORT = "?layers=2&steps=40"  # under a second
WAIT = 120_000
ENDED = "() => document.querySelector('gradient-playground .question b')"


@pytest.fixture
def screen(site, open_page):
    """screen(language, query, **context) -> the element; nothing may go wrong."""
    watches = []

    def opened(language="en", query=SHORT, **options):
        page = open_page(**options)
        watches.append(Watch(page, site[1]))
        page.goto(f"{site[1]}{language}/{PATH}{query}")
        element = page.locator("gradient-playground")
        element.locator(".lanes figure").first.wait_for()
        return element

    yield opened
    assert not [problem for watch in watches for problem in watch.problems]


def steps(element) -> list[int]:
    """How many steps each lane has trained."""
    return element.evaluate("e => e.lanes.map(({ runs }) => runs[0].length)")


def bet(element, number=0, **options) -> str:
    """Bet, and what is said when the run has ended."""
    element.locator(".bets button").nth(number).click(**options)
    element.page.wait_for_function(ENDED, timeout=WAIT)
    return element.locator(".question").inner_text()


# A run of other settings is pale, with its end; the button to run is on the screen.
IN_SIGHT = """e => e.lanes.every(({ old }) => old.text[2] && old.drawn.layers === 2)
  && e.ready.getBoundingClientRect().bottom <= innerHeight + 1"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_bet_starts_the_run(language, screen, browser_checks):
    element = screen(language, viewport=VIEWPORTS["phone"], reduced_motion="reduce")
    page = element.page
    page.wait_for_timeout(300)
    assert steps(element) == [0, 0]  # untouched, nothing moves
    assert element.locator(".bets button").count() == 5
    said = bet(element, 3)
    assert steps(element) == [40, 40]
    outcome = element.evaluate("e => e.outcome.map(({ learned }) => learned)")
    right = outcome == [False, False]  # the bet on neither
    assert said.startswith({"en": "Right.", "zh": "押对了。"}[language]) is right
    assert element.locator(".question a[href*='gradient-dies']").is_visible()
    assert element.locator(".end").all_inner_texts() != ["", ""]
    assert all(element.locator(".note").all_inner_texts())
    assert said[:4] in element.locator("[role=status]").text_content()
    element.locator(".settings .pick").nth(1).click()  # what ran stays, Run is near
    assert steps(element) == [0, 0] and element.locator(".ready button").is_visible()
    assert element.evaluate(IN_SIGHT)
    assert all("2" in text for text in element.locator(".note").all_inner_texts())
    element.locator(".ready button").click()
    page.wait_for_function(ENDED, timeout=WAIT)
    assert steps(element) == [40, 40] and element.locator(".ready").is_hidden()
    assert fits(page, VIEWPORTS["phone"]["width"])
    sizes = element.locator("button:visible, select:visible").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 43.9
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert not axe_violations(page)
    page.set_viewport_size(VIEWPORTS["desktop"])
    turn(page, "dark")
    assert not axe_violations(page, True)
    drawn = "e => [e.look().dark, e.lanes[0].canvas.toDataURL()]"
    dark = element.evaluate(drawn)
    page.emulate_media(media="print")
    paper = element.evaluate(drawn)
    assert dark[0] and not paper[0] and dark[1] != paper[1]  # paper is light
    browser_checks.add(16)


def test_a_run_is_read_by_keyboard(screen, browser_checks):
    element = screen()
    page = element.page
    element.locator(".bets button").last.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(ENDED, timeout=WAIT)
    assert page.evaluate("document.activeElement.closest('.question') !== null")
    box = element.locator(".map").nth(1)
    box.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    assert box.get_attribute("aria-valuenow") == "38"
    read = box.get_attribute("aria-valuetext")
    row = element.evaluate("e => e.lanes[1].runs[0][38]")
    assert read.startswith(f"step 38, loss {row['loss']:.2f}; layer 1: gradient")
    assert read in element.locator(".reading").inner_text()
    wide, high = (box.bounding_box()[side] for side in ("width", "height"))
    box.hover(position={"x": wide - 4, "y": high - 24})
    assert "step 39" in box.get_attribute("aria-valuetext")
    assert "embedding" in box.get_attribute("aria-valuetext")
    cells = "e => e.lanes[0].image.toDataURL()"
    before = element.evaluate(cells)
    element.locator(".scale .pick").nth(1).press("Enter")
    assert element.evaluate(cells) != before and steps(element) == [40, 40]
    browser_checks.add(7)


def test_the_address_holds_the_state(screen, browser_checks):
    query = "?lanes=deepnorm.rms,none&layers=12&rate=0.003&warmup=0.5&seed=3&steps=20"
    first = screen(query=query)
    first.locator(".settings .pick", has_text="2").first.click()
    first.locator("input[type=range]").press("ArrowRight")
    first.locator(".actions button", has_text="Add a lane").click()
    first.locator("figure").nth(2).locator("select").first.select_option("post")
    state = "e => JSON.stringify(e.state)"
    held = first.evaluate(state)
    search = first.page.url.partition("?")[2]
    second = screen(query="?" + search)
    assert second.evaluate(state) == held
    assert '"rate":0.01' in held and '"layers":2' in held and '"post"' in held
    browser_checks.add(2)


def test_a_run_stops_at_once_and_starts_again_the_same(screen, browser_checks):
    element = screen(query="?layers=12&steps=2000&seeds=5")  # it will not end meanwhile
    element.locator(".bets button").first.click()
    element.page.wait_for_function(
        "() => document.querySelector('gradient-playground').lanes[1].runs[0].length",
        timeout=WAIT,
    )
    element.locator("input[type=range]").press("ArrowLeft")  # during the run
    assert element.evaluate("e => e.lanes[0].moves.length") == 1
    element.locator(".bets button").click()
    at = steps(element)
    assert "decides nothing" in element.locator(".question").inner_text()
    losses = "e => e.lanes[0].runs[0].slice(0, 1).map(({ loss }) => loss)"
    before = element.evaluate(losses)
    element.page.wait_for_timeout(300)
    assert steps(element) == at
    element.locator(".bets button").first.click()
    element.page.wait_for_function(
        "() => document.querySelector('gradient-playground').lanes[0].runs[0].length",
        timeout=WAIT,
    )
    assert element.evaluate(losses) == before
    element.locator(".bets button").click()
    browser_checks.add(4)


def test_a_picture_is_saved_and_a_challenge_told(screen, browser_checks):
    """Four maps without names; the choice names them, and solves it where right."""
    element = screen(query="?challenge=blind&seed=4&steps=20")
    page = element.page
    assert element.locator("select").count() == 0
    element.locator(".bets button").first.click()
    choices = element.locator("figure button")
    choices.nth(3).wait_for(timeout=WAIT)
    assert not any(element.locator(".note").all_inner_texts())
    places = element.evaluate("e => e.state.lanes.map(({ place }) => place)")
    choices.nth(places.index("post")).click()
    assert "Solved" in element.locator(".question").inner_text()
    assert "Post-Norm" in element.locator("figcaption b").all_inner_texts()
    there = page.url
    element.locator(".bets button").first.click()  # the next challenge
    assert element.evaluate("e => e.state.challenge") == "rescue"
    formula = element.locator("figcaption code")
    assert formula.inner_text() == "norm(x + F(x))"
    page.goto(there)
    assert element.locator(".challenges .solved").count() == 1
    element.locator(".bets button").first.click()
    choices.nth(3).wait_for(timeout=WAIT)
    with page.expect_download() as saved:
        element.locator(".actions button").last.click()
    assert saved.value.suggested_filename.endswith(".png")
    assert saved.value.path().read_bytes()[:4] == b"\x89PNG"
    browser_checks.add(8)


REFUSING = """window.refused = 0;
window.Worker = class extends EventTarget {
  constructor() {
    super();
    window.refused += 1;
    setTimeout(() => this.dispatchEvent(new Event("error")));
  }
  postMessage() {}
  terminate() {}
};"""


def test_a_refused_worker_is_replaced(site, open_page, browser_checks):
    """The page trains in slices of time, as it does from files."""
    page = open_page()
    page.add_init_script(REFUSING)
    page.goto(f"{site[1]}en/{PATH}{SHORT}")
    element = page.locator("gradient-playground")
    bet(element)
    assert steps(element) == [40, 40] and page.evaluate("window.refused") > 0
    browser_checks.add(1)


def test_as_a_file_it_trains_on_the_page(open_page, tmp_path, browser_checks):
    """No worker there: the same script runs in slices of time, and says the same."""
    for name, path in playground.PUBLISHED.items():
        (tmp_path / name).write_text(explore.classic(path), encoding="utf-8")
    (tmp_path / playground.STYLE.name).write_text("")
    made = playground.make("screen", "en", "").replace(explore.ASSETS, "")
    file = tmp_path / "page.html"
    file.write_text(f'<!doctype html><html lang="en"><body>{made}', encoding="utf-8")
    page, problems = open_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{file.as_uri()}{SHORT}")
    element = page.locator("gradient-playground")
    said = bet(element, 3)
    assert steps(element) == [40, 40] and said.startswith("Right.") and not problems
    browser_checks.add(1)


def test_reached_from_another_page_and_left_during_a_run(visit, browser_checks):
    page = visit("en/", viewport=VIEWPORTS["desktop"])
    page.locator(".map a[href*=playground]").click()
    element = page.locator("gradient-playground")
    element.locator(".bets button").first.click()
    page.wait_for_function(
        "() => document.querySelector('gradient-playground').lanes[0].runs[0].length",
        timeout=WAIT,
    )
    left = element.element_handle()
    page.locator(".md-tabs a[href*=interview]").click()
    page.wait_for_url("**/interview/**")
    element.wait_for(state="detached")
    assert left.evaluate("e => e.control === null")
    browser_checks.add(2)


def test_without_scripts_the_recorded_run_is_there(site, open_page, browser_checks):
    page = open_page(java_script_enabled=False)
    page.goto(f"{site[1]}zh/{PATH}")
    assert page.locator("gradient-playground a").is_visible()
    assert page.locator("#running_maximum_loss-intel-xeon svg").is_visible()
    browser_checks.add(2)
