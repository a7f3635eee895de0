"""Live figures in Chromium: moved by hand, shared by address, standing without scripts.

Their engine is loaded here as the modules it is written as; tests/explore holds it
against torch.
"""

import re

import pytest
from PIL import Image, ImageColor
from playwright.sync_api import expect

from scripts.site.pictures import explore
from tests.browser import page_length
from tests.browser.conftest import VIEWPORTS, awake
from tests.browser.crawl import Watch, axe_violations, fits, settle
from tests.explore.conftest import loaded
from tests.lanes import first_quick
from tests.pages.page_prose import EN

HOST = "http://engine.test/"
# What the modules compute, as one list of bits.
COMPUTE = """({ forward, backward, shared, encode, FORMATS, rmsNorm, Random }) => {
  const bitsOf = (x) => Array.from(new Uint32Array(Float32Array.from(x).buffer));
  const draw = new Random(7);
  const values = (count) => new Float32Array(count).map(() => draw.uniform() - 0.5);
  const found = [];
  for (const norm of ["layer", "rms", "batch", "instance", "group"]) {
    const [x, dy, gain] = [values(120), values(120), values(6)];
    const spec = { cells: shared(norm, [4, 5, 6]), gain, eps: 1e-5 };
    if (norm === "rms") spec.centred = false;
    const saved = forward(x, spec);
    const { dx, dgain } = backward(dy, spec, saved);
    found.push(...[saved.y, dx, dgain].flatMap(bitsOf));
  }
  for (const format of Object.values(FORMATS)) {
    const options = { eps: 1e-6, order: "llama", format };
    const y = rmsNorm([...values(8)], [...values(8)], options).y;
    found.push(...bitsOf(y), ...y.map((v) => encode(v, format)));
  }
  return found;
}"""
MODULES = """async (names) => {
  const loaded = await Promise.all(names.map((name) => import("/" + name)));
  return Object.assign({}, ...loaded);
}"""
ONE_SCOPE = "{ forward, backward, shared, encode, FORMATS, rmsNorm, Random }"


@pytest.fixture
def modules(open_page):
    """A page of a host that has the engine's modules and nothing else."""
    page = open_page()

    def answer(route):
        file = explore.ENGINE / route.request.url.removeprefix(HOST)
        if file.is_file():
            route.fulfill(path=file, content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html>", content_type="text/html")

    page.route(HOST + "**", answer)
    page.goto(HOST)
    return page


def test_modules_compute_what_the_tested_script_does(modules, browser_checks):
    names = sorted(path.name for path in explore.ENGINE.glob("*.js"))
    found = modules.evaluate(
        f"async (names) => ({COMPUTE})(await ({MODULES})(names))", names
    )
    with loaded() as engine:
        assert engine.run(f"() => ({COMPUTE})({ONE_SCOPE})") == found
    assert len(found) > 1000
    browser_checks.add(1)


PAGES = {
    "numbers": "rmsnorm/low-precision/",
    "cells": "foundations/batch-norm-vs-layer-norm/",
    "geometry": "foundations/layer-norm/",
    "backward": "foundations/layer-norm/",
    "attention": "attention/qk-norm/",
}
EVERY = [(language, name) for language in ("en", "zh") for name in PAGES]


@pytest.fixture
def figure(site, open_page):
    """figure(language, name, query, **context) -> the element; nothing may go wrong."""
    watches = []

    def opened(language, name, query="", **options):
        page = open_page(**options)
        page.clock.install()  # for ``settled``
        watches.append(Watch(page, site[1]))
        page.goto(f"{site[1]}{language}/{PAGES[name]}{query}")
        return page.locator(f"explore-{name}")

    yield opened
    assert not [problem for watch in watches for problem in watch.problems]


def settled(element) -> str:
    """What a screen reader is told once the state has stood still."""
    element.page.clock.fast_forward(1000)
    return element.locator("[role=status]").text_content()


@pytest.mark.parametrize(("language", "name"), EVERY)
def test_by_keyboard(language, name, figure, browser_checks):
    element = figure(language, name)
    view, before = element.locator(".view"), settled(element)
    opening = view.inner_html()
    slider = element.locator("input[type=range]").first
    output = element.locator("input[type=range] + [data-of]").first
    shown = output.inner_text()
    slider.focus()
    for _ in range(3):
        element.page.keyboard.press("ArrowLeft")
    assert output.inner_text() == slider.get_attribute("aria-valuetext") != shown
    assert view.inner_html() != opening
    assert settled(element) != before
    assert f"{name}." in element.page.url
    moved = view.inner_html()
    element.page.reload()
    assert view.inner_html() == moved  # the address holds the state
    element.locator("button[value='']").click()
    assert view.inner_html() == opening
    settled(element)
    assert "?" not in element.page.url
    browser_checks.add(6)


# After a bet: the picture with what is said above it, and the focus not lost.
IN_SIGHT = """e => e.view.getBoundingClientRect().bottom <= innerHeight + 1
  && e.shows.getBoundingClientRect().top
    >= document.querySelector(".md-header").getBoundingClientRect().bottom
  && document.activeElement.matches("[aria-pressed=true]")"""


@pytest.mark.parametrize(("language", "name"), EVERY)
def test_presets_by_touch(language, name, figure, browser_checks):
    element = figure(language, name, viewport=VIEWPORTS["phone"], has_touch=True)
    presets = element.locator("[aria-pressed]")
    told = set()
    for number in range(presets.count()):
        before = element.locator(".view").inner_html()
        presets.nth(number).tap()
        expect(presets.nth(number)).to_have_attribute("aria-pressed", "true")
        assert element.locator(".view").inner_html() == before  # not before the bet
        element.locator("[data-bet=wrong]").tap()
        element.locator(".asks").wait_for(state="hidden")
        assert element.locator("[aria-pressed=true]").count() == 1
        assert element.evaluate(IN_SIGHT)
        told.add(element.locator(".shows").inner_text())
        assert fits(element.page, VIEWPORTS["phone"]["width"])
    assert len(told) == presets.count() and "" not in told
    assert not axe_violations(element.page)
    browser_checks.add(3)


def test_a_cell_is_chosen_by_hand_and_by_arrows(figure, browser_checks):
    element = figure("en", "cells")
    cells = element.locator("input[name=cell]")
    cells.nth(4).click()
    assert element.locator("rect.chosen").count() == 6
    element.page.keyboard.press("ArrowRight")
    assert cells.nth(5).is_checked()
    assert "position 2, feature 2" in settled(element)
    browser_checks.add(3)


def test_a_cell_is_chosen_in_a_panel(figure, browser_checks):
    element = figure("en", "cells")
    element.locator(".norms svg").nth(2).locator("rect").nth(13).click()
    assert element.locator("input[name=cell]").nth(13).is_checked()
    assert element.locator("rect.chosen").count() == 6
    browser_checks.add(2)


@pytest.mark.parametrize("name", first_quick("backward", "geometry"))
def test_the_arrow_is_dragged(name, figure, browser_checks):
    element = figure("en", name)
    page, held = element.page, "e => [...new FormData(e.querySelector('form'))].join()"
    before = element.evaluate(held)
    settle(page)
    element.locator(".grip").scroll_into_view_if_needed()
    box = element.locator(".grip").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 25, box["y"] + 20, steps=4)
    page.mouse.up()
    dragged = element.evaluate(held)
    assert dragged != before
    after = element.locator(".grip").bounding_box()
    assert (
        abs(after["x"] + after["width"] / 2 - (box["x"] - 25)) < 12
    )  # in steps of 0.1
    page.mouse.move(box["x"], box["y"])  # let go: nothing follows any more
    assert element.evaluate(held) == dragged
    browser_checks.add(3)


def test_a_query_is_dragged_and_turned_by_a_click(figure, browser_checks):
    element = figure("en", "attention")
    page, grip = element.page, element.locator(".grip")
    settle(page)
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 40, box["y"] - 30, steps=4)
    page.mouse.up()
    grown = element.locator("[data-of=grown]").inner_text()
    assert grown != "times 1"
    element.locator("[data-key='4'] .target").click()
    assert element.locator("[data-of=angle]").inner_text() == "215°"
    assert element.locator("[data-of=grown]").inner_text() == grown
    box = element.locator(".view > svg").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)  # beside the tip
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 150, steps=4)
    page.mouse.up()
    assert page.evaluate("getSelection().toString()") == ""
    browser_checks.add(4)


def test_what_has_no_effect_is_out_of_reach(figure, browser_checks):
    """A remedy's own slider alone; its value outlives the other remedies."""
    element = figure("en", "attention", "?attention.gain=3")
    gain, cap = (element.locator(f"[name={name}]") for name in ("gain", "cap"))
    assert gain.is_disabled() and cap.is_disabled()
    element.locator("select").select_option("norm")
    assert gain.is_enabled() and cap.is_disabled() and gain.input_value() == "3"
    browser_checks.add(2)


BELOW_THE_HEADER = """e => e.closest("figure").getBoundingClientRect().top
  >= document.querySelector(".md-header").getBoundingClientRect().bottom"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_bet_is_answered_and_shared(language, figure, browser_checks):
    element = figure(language, "geometry")
    element.locator("[aria-pressed]").nth(2).click()
    element.locator("[data-bet=holds]").click()
    told = element.locator(".shows").inner_text()
    assert told.startswith(
        {"en": "You said “Always”, but", "zh": "你猜的是“总是成立”，其实"}[language]
    )
    settled(element)
    assert "geometry.claim=rms-norm-gives-unit-length" in element.page.url
    query = element.page.url.partition("?")[2]
    shared = figure(language, "geometry", f"?{query}")
    assert shared.locator("[aria-pressed=true]").count() == 1
    assert shared.evaluate(BELOW_THE_HEADER)
    why = element.evaluate("(e, l) => e.claim.shows[l]", language)
    assert told.endswith(why) and shared.locator(".shows").inner_text().endswith(why)
    assert shared.locator(".view").inner_html() == element.locator(".view").inner_html()
    shared.locator("input[type=range]").first.press("ArrowLeft")
    settled(shared)
    assert "claim" not in shared.page.url  # another state than the claim's
    browser_checks.add(6)


@pytest.mark.parametrize("name", first_quick(*sorted(PAGES)))
def test_a_picture_is_saved(name, figure, browser_checks):
    options = {"viewport": VIEWPORTS["phone"], "has_touch": True}
    element = figure("zh", name, color_scheme="dark", **options)
    element.locator("[aria-pressed]").first.tap()
    element.locator("[data-bet=wrong]").tap()
    with element.page.expect_download() as saved:
        element.locator("[data-save]").tap()
    assert saved.value.suggested_filename == f"{name}.png"
    assert element.locator(".told").count() == 0
    told = element.evaluate("e => [e.setting().join(), e.link(location.href).href]")
    assert "：" in told[0] and f"?{name}.claim={claim(name)}" in told[1]
    with Image.open(saved.value.path()) as picture:
        wide = element.evaluate("e => 2 * e.view.clientWidth")
        assert picture.width == pytest.approx(wide + 64, abs=1)
        assert picture.height > picture.width / 2
        seen = dict(map(reversed, picture.convert("RGB").getcolors(2**24)))
    for colour in ("--figure-ink", "--figure-1"):
        assert seen[drawn(element, f"var({colour})")] > 20
    assert max(seen, key=seen.get) == drawn(element, "var(--md-default-bg-color)")
    browser_checks.add(6)


def drawn(element, colour: str) -> tuple:
    """A colour of the style sheet as it is seen: red, green, blue."""
    made = element.evaluate(
        """(e, colour) => {
          const probe = document.createElement("i");
          probe.style.color = colour;
          e.append(probe);
          const seen = getComputedStyle(probe).color;
          probe.remove();
          return seen;
        }""",
        colour,
    )
    return ImageColor.getrgb(made)


def claim(name) -> str:
    return explore.ask(name, "figure.presets[0].claim")


def test_what_is_not_read_is_said(figure, browser_checks):
    element = figure("en", "numbers")
    element.locator("input[name=row]").fill("1, x, 2")
    assert "Not read: x." in element.locator("[data-of=unread]").inner_text()
    element.locator("input[name=row]").fill("1 2 3 4 5 6 7 8 9")
    assert "first 8" in element.locator("[data-of=unread]").inner_text()
    element.locator("input[name=row]").fill("1, 2")
    assert element.locator("[data-of=unread]").inner_text() == ""
    browser_checks.add(3)


def test_a_row_is_typed(figure, browser_checks):
    element = figure("en", "numbers")
    element.locator("input[name=row]").fill("1e4 <b> 2")
    assert element.locator(".normed tbody th").all_inner_texts()[:2] == ["10000", "2"]
    element.locator("select").select_option("bfloat16")
    assert element.locator(".chosen th").inner_text().startswith("bfloat16")
    element.locator("select").select_option("float16")
    element.locator("input[name=row]").fill("1e5")  # too large to be stored
    assert set(element.locator(".normed tbody td").all_inner_texts()) >= {"NaN"}
    browser_checks.add(3)


def test_a_state_is_shared(figure, browser_checks):
    first = figure("en", "numbers")
    first.locator("input[name=row]").fill("1_0, 2; -3e-2 & 4")
    first.locator("select").select_option("float8_e4m3fn")
    first.locator("input[name=gain]").press("ArrowRight")
    settled(first)
    query = first.page.url.partition("?")[2]
    second = figure("en", "numbers", f"?{query}#intuition")
    held = "e => [...new FormData(e.querySelector('form'))].join()"
    assert second.evaluate(held) == first.evaluate(held)
    views = [each.locator(".view").inner_html() for each in (first, second)]
    assert views[0] == views[1]
    assert second.locator(".chosen th").inner_text().startswith("float8_e4m3fn")
    browser_checks.add(3)


@pytest.mark.parametrize(
    "query",
    ["?cells.cell=99&cells.value=x", "?cells.batch=7&cells.padding=", "?cells.x=1"],
)
def test_a_broken_address_does_no_harm(query, figure, browser_checks):
    element = figure("en", "cells", query)
    assert element.locator("rect.chosen").count() == 6
    assert element.locator("form").evaluate("f => [...new FormData(f)].length") == 4
    browser_checks.add(2)


@pytest.mark.parametrize(("language", "name"), first_quick(*EVERY))
def test_without_scripts_and_in_print(language, name, figure, browser_checks):
    still = figure(language, name, java_script_enabled=False)
    assert still.locator(".view").is_visible()
    assert not still.locator("form").is_visible()
    live = figure(language, name)
    live.page.emulate_media(media="print")
    assert live.locator(".view").is_visible()
    assert not live.locator("form").is_visible()
    assert live.locator(".view").inner_html() == still.locator(".view").inner_html()
    browser_checks.add(3)


def test_reached_from_another_page(site, open_page, browser_checks):
    page = open_page(viewport=VIEWPORTS["desktop"])
    watch = Watch(page, site[1])
    page.goto(f"{site[1]}en/rmsnorm/rms-norm/")
    assert not [url for url in watch.weight if explore.ASSETS in url]
    awake(page)
    page.locator("nav a[href*='low-precision']").first.click()
    page.locator("explore-numbers form").wait_for()
    page.locator("explore-numbers [aria-pressed]").nth(2).click()
    assert "∞" in page.locator("explore-numbers .normed").inner_text()
    assert [url for url in watch.weight if url.endswith("numbers.js")]
    assert not watch.problems
    browser_checks.add(4)


def test_pages_without_a_figure_load_nothing(site, browser_checks):
    with_one = {
        file.relative_to(site[0] / "en").parent.as_posix() + "/"
        for file in (site[0] / "en").rglob("*.html")
        if explore.ASSETS in file.read_text(encoding="utf-8")
    }
    named = ("[[ explore.", "[[ playground.")
    pages = [page for page in EN.values() if any(each in page.text for each in named)]
    paths = [page.path.removesuffix(".md").removesuffix("/index") for page in pages]
    assert with_one == {path + "/" for path in paths}
    assert with_one >= set(PAGES.values())
    browser_checks.add(1)


@pytest.mark.slow
@pytest.mark.parametrize(("language", "name"), EVERY)
def test_page_is_not_longer(language, name, figure, browser_checks):
    path = f"{language}/{PAGES[name]}"
    found = page_length.measure(figure(language, name).page, path)
    assert not found.problems()
    browser_checks.add(1)


def test_nothing_moves_by_itself(browser_checks):
    css = explore.STYLE.read_text(encoding="utf-8")
    assert not re.search(r"animation|transition", css)
    browser_checks.add(1)
