"""The model atlas in a browser: chosen and sorted by mouse and by keyboard."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import VIEWPORTS, awake
from tests.browser.crawl import fits

SHOWN = "model-atlas tbody tr:not([hidden])"


@pytest.fixture
def atlas(site, open_page):
    """atlas(language, **context options) -> the page, when its element is awake."""

    def visit(language, **options):
        page = open_page(**options)
        page.goto(f"{site[1]}{language}/practice/model-atlas/")
        if options.get("java_script_enabled", True):
            page.locator("model-atlas form").wait_for()
            awake(page)
        return page

    return visit


@pytest.mark.parametrize("viewport", VIEWPORTS)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_choose_by_mouse(language, viewport, atlas, browser_checks):
    page = atlas(language, viewport=VIEWPORTS[viewport])
    rows = page.locator(SHOWN).count()
    page.locator("select[name=norm]").select_option("LayerNorm")
    page.locator("select[name=placement]").select_option("post")
    assert 0 < page.locator(SHOWN).count() < rows
    for kind in page.locator(f"{SHOWN} td:nth-of-type(1)").all_inner_texts():
        assert kind.startswith("LayerNorm")
    page.locator("select[name=eps]").select_option("1e-12")
    epsilons = page.locator(f"{SHOWN} td:nth-of-type(4)").all_inner_texts()
    assert set(epsilons) == {"1e-12"}
    shown = page.locator("model-atlas output").inner_text()
    assert str(page.locator(SHOWN).count()) in shown
    page.locator("model-atlas button[type=reset]").click()
    expect(page.locator(SHOWN)).to_have_count(rows)
    browser_checks.add(3)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_choose_and_sort_by_keyboard(language, atlas, browser_checks):
    page = atlas(language)
    page.locator("model-atlas input").focus()
    page.keyboard.type("gemma")
    names = page.locator(f"{SHOWN} th a").all_inner_texts()
    assert names and all("gemma" in name for name in names)
    for key in ["Tab"] * 8 + ["Enter"]:  # seven lists, then the button
        page.keyboard.press(key)
    expect(page.locator("model-atlas input")).to_have_value("")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the first column, downwards
    first = page.locator("model-atlas thead th").first
    assert first.get_attribute("aria-sort") == "descending"
    names = page.locator(f"{SHOWN} th a").all_inner_texts()
    assert names[0] > names[-1]
    browser_checks.add(3)


def test_a_name_leads_to_its_block(atlas, browser_checks):
    page = atlas("en")
    page.locator("model-atlas a", has_text="gemma2").first.click()
    heading = page.locator("h3#gemma2")
    heading.wait_for()
    assert heading.locator("xpath=following::*[name()='svg']").first.is_visible()
    browser_checks.add()


def test_after_instant_navigation_and_back(site, open_page, browser_checks):
    page = open_page()
    page.goto(f"{site[1]}en/practice/norm-probe/")
    awake(page)
    for _ in range(2):
        page.locator(".md-content a[href*='model-atlas']").first.click()
        page.locator("model-atlas form").wait_for()
        page.go_back()
        page.locator("#norm-probe").wait_for()
    browser_checks.add()


def test_without_scripts_the_table_is_whole(atlas, browser_checks):
    page = atlas("en", java_script_enabled=False)
    assert page.locator(SHOWN).count() > 170
    assert page.locator("model-atlas form").count() == 0
    browser_checks.add()


BROKEN = r"""() => {
  const broken = [];
  const texts = document.createTreeWalker(
    document.querySelector("table.cards"), NodeFilter.SHOW_TEXT);
  for (let node; (node = texts.nextNode()); ) {
    for (const word of node.data.matchAll(/[\w.]+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = [...range.getClientRects()].map(({ top }) => Math.round(top));
      if (new Set(tops).size > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""


@pytest.mark.parametrize("language", ["zh", "en"])
def test_ten_families_break_inside_no_word(language, visit, browser_checks):
    """A phone shows cards, each value behind its label, and nothing to scroll."""
    page = visit(f"{language}/practice/released-models/", viewport=VIEWPORTS["phone"])
    assert page.evaluate(BROKEN) == []
    assert page.locator("table.cards thead").is_hidden()
    label = "el => getComputedStyle(el, '::before').content"
    cells = page.locator("table.cards tbody tr").first.locator("td")
    assert all(len(cell.evaluate(label)) > 2 for cell in cells.all())
    assert fits(page, VIEWPORTS["phone"]["width"])
    browser_checks.add(4)
