"""Portal, language switch, instant navigation, colour scheme, 404."""

import json
import re
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.browser.conftest import VIEWPORTS, awake, hold, pause
from tests.browser.crawl import axe_violations
from tests.browser.page_length import WINDOW
from tests.lanes import first_quick

SPEED = "rmsnorm/speed/"


@pytest.mark.parametrize(
    ("locale", "language"),
    first_quick(("zh-CN", "zh"), ("zh-TW", "zh"), ("en-GB", "en"), ("fr-FR", "en")),
)
def test_portal_picks_the_language(locale, language, site, open_page, browser_checks):
    page = open_page(locale=locale)
    page.goto(site[1])
    page.wait_for_url(site[1] + language + "/")
    browser_checks.add()


def test_portal_without_scripts(site, open_page, browser_checks):
    page = open_page(java_script_enabled=False)
    page.goto(site[1])
    links = [a.get_attribute("href") for a in page.locator("nav a").all()]
    assert links == ["zh/", "en/"]
    page.get_by_role("link", name="English").click()
    page.wait_for_url(site[1] + "en/")
    assert "Norms, Measured" in page.locator(".md-header").inner_text()
    browser_checks.add()


@pytest.mark.parametrize(("here", "there"), [("zh", "en"), ("en", "zh")])
def test_switch_stays_on_the_page(here, there, site, open_page, browser_checks):
    page = open_page()
    page.goto(site[1] + here + "/" + SPEED + "#questions")
    page.locator("button[aria-label]:has(+ .md-select__inner)").hover()
    page.locator(f".md-select__link[hreflang={there}]").click()
    page.wait_for_url(f"{site[1]}{there}/{SPEED}*")
    assert page.evaluate("document.documentElement.lang") == there
    assert page.url.endswith("#questions")
    browser_checks.add()


def test_switch_wherever_the_site_is_served(elsewhere, open_page, browser_checks):
    page = open_page()
    page.goto(elsewhere + "zh/" + SPEED + "#bytes")
    page.locator("button[aria-label]:has(+ .md-select__inner)").hover()
    page.locator(".md-select__link[hreflang=en]").click()
    page.wait_for_url(elsewhere + "en/" + SPEED + "#bytes")
    browser_checks.add()


def test_switch_after_instant_navigation(site, open_page, browser_checks):
    page = open_page()
    page.goto(site[1] + "zh/")
    awake(page)
    page.locator(".md-content a[href*='rms-norm']").first.click()
    page.wait_for_selector("h1#rms-norm")
    page.locator("button[aria-label]:has(+ .md-select__inner)").hover()
    page.locator(".md-select__link[hreflang=en]").click()
    page.wait_for_url(site[1] + "en/rmsnorm/rms-norm/")  # no anchor of the old page
    browser_checks.add()


def test_switch_without_scripts(site, open_page, browser_checks):
    page = open_page(java_script_enabled=False)
    page.goto(site[1] + "zh/" + SPEED)
    link = page.locator(".md-select__link[hreflang=en]").get_attribute("href")
    assert urljoin(page.url, link) == site[1] + "en/" + SPEED
    browser_checks.add()


def test_instant_navigation_keeps_the_document(site, open_page, browser_checks):
    page = open_page()
    page.goto(site[1] + "zh/")
    awake(page)
    page.evaluate("window.stillHere = true")
    page.locator(".md-content a[href*='rms-norm']").first.click()
    page.wait_for_selector("h1#rms-norm")
    assert "/zh/rmsnorm/rms-norm/" in page.url
    assert page.evaluate("window.stillHere") is True
    assert page.locator(".katex").count() > 5
    browser_checks.add()


def test_scheme_is_remembered(site, open_page, browser_checks):
    page = open_page(color_scheme="light")
    page.goto(site[1] + "en/")
    page.locator("label[for='__palette_1']").click()
    page.goto(site[1] + "en/" + SPEED)
    scheme = page.locator("body").get_attribute("data-md-color-scheme")
    assert scheme == "slate"
    browser_checks.add()


def test_missing_page_is_bilingual(site, open_page, browser_checks):
    page = open_page()
    response = page.goto(site[1] + "en/no/such/page/")
    assert response.status == 404
    assert (
        page.get_by_role("link", name="中文首页").get_attribute("href") == "/norms/zh/"
    )
    assert page.get_by_role("link", name="English home page").is_visible()
    browser_checks.add()


@pytest.mark.parametrize("viewport", VIEWPORTS)
def test_a_link_below_the_fork_opens_its_section(viewport, visit, browser_checks):
    """By the address, and from the page itself; others stay shut."""
    path = "en/placement/pre-norm-vs-post-norm/#warm-up-runs"
    page = visit(path, viewport=VIEWPORTS[viewport])
    opened = page.locator("details.deeper[open] > summary h2")
    assert [h.get_attribute("id") for h in opened.all()] == ["warm-up"]
    page.locator("article li > a[href$='#gradients']").first.click()
    page.locator("details[open] #gradients").wait_for()
    assert opened.count() < page.locator("details.deeper").count()
    assert not axe_violations(page)
    browser_checks.add(3)


@pytest.mark.parametrize("path", ["rmsnorm/rms-norm", "labs/deep-stack"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_notebook_button(language, path, site, open_page, browser_checks):
    page = open_page()
    page.goto(f"{site[1]}{language}/{path}/")
    with page.expect_download() as download:
        page.locator("a[download]").click()
    assert download.value.suggested_filename == path.split("/")[1] + ".ipynb"
    book = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    code = [c["source"] for c in book["cells"] if c["cell_type"] == "code"]
    assert code and not any("snippets." in source for source in code)
    browser_checks.add()


def programs(page: Path) -> tuple[list[str], str | None]:
    """What the blocks of a built page, and the page, are copied as."""
    [name] = re.findall(r'data-programs="([^"]*)"', page.read_text("utf-8"))
    script = (page.parent / name).read_text(encoding="utf-8")
    data = json.loads(script[script.index("detail:") + 7 : script.rindex("}));")])

    def joined(parts):
        texts = (p if isinstance(p, str) else data["cells"][p] for p in parts)
        return "\n\n\n".join(filter(None, texts)) + "\n"

    whole = joined(data["page"]) if "page" in data else None
    return [joined(parts) for parts in data["blocks"]], whole


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_block_has_its_program(language, site, browser_checks):
    counted = 0
    for page in (site[0] / language).rglob("index.html"):
        text = page.read_text("utf-8")
        blocks = text.count('class="language-python highlight"')
        if "data-programs" in text:
            assert len(programs(page)[0]) == blocks > 0, page
            counted += blocks
        else:
            assert blocks < 2 and ">snippets." not in text, page
    assert counted > 800
    browser_checks.add(counted)


SAYS = {
    "zh": ("已复制 {} 行：这段代码", "已复制 {} 行：本页的全部代码"),
    "en": ("Copied {} lines: this block", "Copied {} lines: the code of this page"),
}


@pytest.mark.parametrize("language", ["zh", "en"])
def test_what_is_copied_brings_what_it_needs(language, site, open_page, browser_checks):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])

    def told(said: str, text: str) -> None:
        page.get_by_text(said.format(text.count("\n"))).wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == text

    of_block, of_page = SAYS[language]
    for path in ("placement/deepnorm/", "claims/deep-recipes/"):
        page.goto(f"{site[1]}{language}/{path}")
        wanted, whole = programs(site[0] / language / path / "index.html")
        blocks = page.locator(".language-python.highlight")
        page.locator("details").evaluate_all("all => all.map(d => d.open = true)")
        button = blocks.last.locator("[data-md-type=copy]")
        button.evaluate("button => button.click()")  # before anybody reached for it
        told(of_block, wanted[-1])
        blocks.last.locator("code").evaluate(
            "code => getSelection().selectAllChildren(code)"
        )
        page.keyboard.press("Control+c")
        told(of_block, wanted[-1])
        blocks.nth(1).hover()
        blocks.nth(1).locator("[data-md-type=copy]").click()
        told(of_block, wanted[1])
        button = page.locator("button[data-programs]")
        assert button.is_visible() == bool(whole)
        if whole:
            button.click()
            told(of_page, whole)
    browser_checks.add(7)


def test_a_block_is_copied_alone_where_its_program_does_not_load(
    site, open_page, browser_checks
):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.route("**/*.programs.js", lambda route: route.abort())
    page.goto(site[1] + "en/placement/deepnorm/")
    block = page.locator(".language-python.highlight").first
    page.locator("details").evaluate_all("all => all.map(d => d.open = true)")
    block.locator("[data-md-type=copy]").evaluate("button => button.click()")
    page.get_by_text("Copied this block alone").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    first, _, rest = copied.partition("\n")
    assert first.startswith("# ") and first.endswith(page.url)
    assert rest.strip() == block.locator("code").inner_text().strip()
    page.locator("button[data-programs]").click()
    page.get_by_text("Nothing was copied").wait_for()
    browser_checks.add(2)


def test_tab_stays_out_of_the_closed_drawer(site, open_page, browser_checks):
    page = open_page(viewport=VIEWPORTS["phone"])
    page.goto(site[1] + "en/")
    awake(page)
    panel = page.locator(".md-sidebar--primary")
    assert panel.get_attribute("inert") is not None
    page.locator("label.md-header__button[for=__drawer]").click()
    assert panel.get_attribute("inert") is None
    panel.locator("a[href*='learn']").first.click()
    page.wait_for_url("**/learn/**")
    page.locator(".md-sidebar--primary[inert]").wait_for(state="attached")
    page.set_viewport_size(VIEWPORTS["desktop"])
    page.locator(".md-sidebar--primary:not([inert])").wait_for(state="attached")
    browser_checks.add(4)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_sidebar_opens_one_section(language, site, open_page, browser_checks):
    page = open_page(viewport=VIEWPORTS["desktop"])
    page.goto(f"{site[1]}{language}/placement/deepnorm/")
    links = page.locator(".md-sidebar--primary a:visible").all()
    addresses = [link.evaluate("link => link.href") for link in links]
    sections = [each.split(f"/{language}/")[1].split("/")[0] for each in addresses]
    assert sections.count("placement") > 4
    assert len(sections) - sections.count("placement") < 12, sections
    assert page.locator(".md-tabs__link").count() == 4
    assert page.locator(".md-path").is_visible()
    browser_checks.add(2)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(
    "path", first_quick("", "rmsnorm/rms-norm/", "claims/", "interview/quiz/")
)
def test_no_label_stands_three_times(path, language, site, open_page, browser_checks):
    """A section is named by its tab, and not once more above its pages."""
    page = open_page(viewport=VIEWPORTS["desktop"])
    page.goto(f"{site[1]}{language}/{path}")
    tabs = page.locator(".md-tabs__link").all_inner_texts()
    side = page.locator(".md-sidebar--primary :is(.md-nav__link, .md-nav__title)")
    labels = [
        *tabs,
        *(label.inner_text() for label in side.all() if label.is_visible()),
    ]
    twice = {label.strip() for label in labels if labels.count(label) > 1}
    here = page.locator(".md-tabs__item--active").inner_text().strip()
    assert not [label for label in labels if labels.count(label) > 2]
    assert twice <= set(tabs) - ({here} if "rms-norm" not in path else set())
    browser_checks.add(2)


def test_a_link_after_a_scroll_keeps_its_anchor(site, open_page, browser_checks):
    """Also where its page takes longer than the theme's note of the section in view."""
    page = open_page(viewport=WINDOW)
    page.goto(f"{site[1]}en/attention/qk-norm/")
    awake(page)
    release = hold(page, "**/attention/qk-clip/")
    link = page.locator("article a[href$='qk-clip/#bound']").first
    link.scroll_into_view_if_needed()
    page.mouse.wheel(0, 40)
    link.click()
    pause(page, 1000)
    release()
    page.locator("h1#qk-clip").wait_for()
    assert page.url.endswith("en/attention/qk-clip/#bound")
    browser_checks.add(2)
