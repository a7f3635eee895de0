"""Two models of the atlas compared in a browser: picked, linked to, left again."""

import shutil
from itertools import product

import pytest
from playwright.sync_api import expect

from scripts.site.publish import offline
from tests.browser.conftest import ROOT, VIEWPORTS, awake, hold, pause
from tests.browser.crawl import Watch, axe_violations, fits
from tests.lanes import first_quick
from tests.site.conftest import Project

PAGE = "practice/model-atlas/"
ANSWER = "model-compare .answer li"
SAID = {"en": "Differences from llama to", "zh": "从 llama 到"}


@pytest.fixture
def atlas(site, open_page):
    """atlas(language, hash, **context options) -> the page, with its picker awake."""
    watches = []

    def visit(language, place="", **options):
        page = open_page(**options)
        watches.append(Watch(page, site[1]))
        page.goto(f"{site[1]}{language}/{PAGE}{place}")
        page.locator("model-compare form").wait_for()
        awake(page)
        return page

    yield visit
    assert not [problem for watch in watches for problem in watch.problems]


def pick(page, a, b):
    page.locator("select[name=a]").select_option(a)
    page.locator("select[name=b]").select_option(b)
    page.locator(ANSWER).first.wait_for()


@pytest.mark.parametrize("viewport", VIEWPORTS)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_picked_by_mouse(language, viewport, atlas, browser_checks):
    page = atlas(language, viewport=VIEWPORTS[viewport])
    loaded = "performance.getEntriesByType('resource').map((entry) => entry.name)"
    assert not any("atlas-compare" in name for name in page.evaluate(loaded))
    pick(page, "llama", "gemma3_text")
    assert page.url.endswith("#compare=llama,gemma3_text")
    assert page.locator("model-compare .line").inner_text().startswith(SAID[language])
    svgs = page.locator("model-compare svg.block")
    assert svgs.count() == 2
    assert svgs.nth(1).locator("rect.only").count() == 4  # two outputs, q and k
    assert svgs.nth(0).locator("rect.differs").count() == 2
    signs = svgs.nth(1).locator("text.sign").all_text_contents()
    assert signs.count("+") == 4 and signs.count("≠") == 2
    assert page.locator("model-compare ol a[href*='bugs']").count() > 3
    assert fits(page, VIEWPORTS[viewport]["width"])
    tops = [svgs.nth(i).bounding_box()["y"] for i in (0, 1)]
    assert (tops[0] == tops[1]) == (viewport == "desktop")
    browser_checks.add(9)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_answer_is_the_tables(language, atlas, browser_checks):
    """What the script shows is what stands in the page without scripts."""
    page = atlas(language)
    links = page.locator("table.pairs th a")
    assert links.count() > 11
    stop, semicolon = {"en": (".", "; "), "zh": ("。", "；")}[language]
    for i in (0, 5, links.count() - 1):
        links.nth(i).click()
        line = page.locator("model-compare .line")
        name = links.nth(i).inner_text().split()[0]
        expect(line).to_contain_text(name)
        cell = (
            page.locator("table.pairs tbody tr")
            .nth(i)
            .locator("td > span")
            .text_content()
        )
        items = page.locator("model-compare .answer ul li")
        expect(items.first).to_be_visible()
        assert semicolon.join(items.all_text_contents()) + stop == cell
    browser_checks.add(4)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_picked_by_keyboard(language, atlas, browser_checks):
    page = atlas(language)
    for name, typed in (("a", "qwen2"), ("b", "qwen3")):
        page.locator(f"select[name={name}]").focus()
        for _ in range(5):
            page.keyboard.type(typed)
            if page.evaluate("document.activeElement.value") == typed:
                break
            pause(page, 1100)  # a list forgets what was typed, also between two keys
        assert page.evaluate("document.activeElement.value") == typed
    page.locator(ANSWER).first.wait_for()
    assert page.url.endswith("#compare=qwen2,qwen3")
    page.keyboard.press("Tab")  # from the second list to the button
    page.keyboard.press("Enter")
    page.wait_for_url("**/#compare=qwen3,qwen2")
    expect(page.locator("select[name=a]")).to_have_value("qwen3")
    browser_checks.add(3)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_accessible(language, scheme, atlas, browser_checks):
    page = atlas(language, "#compare=llama,gemma4_text", color_scheme=scheme)
    page.locator(ANSWER).first.wait_for()
    assert not axe_violations(page)
    label = page.locator("model-compare svg").nth(1).get_attribute("aria-label")
    assert "q_norm" in label and label.startswith("gemma4_text")
    browser_checks.add(2)


def test_the_address_keeps_the_pair(atlas, browser_checks):
    """A deep link shows the pair; scrolling keeps it; back leads to what was before."""
    page = atlas("en", "#compare=llama,olmo2")
    page.locator(ANSWER).first.wait_for()
    expect(page.locator("select[name=b]")).to_have_value("olmo2")
    expect(page.locator("model-compare")).to_be_in_viewport()
    page.mouse.wheel(0, 2500)
    pause(page, 700)  # the theme notes the section in view
    assert page.url.endswith("#compare=llama,olmo2")
    page.locator("select[name=b]").select_option("qwen3")
    page.wait_for_url("**/#compare=llama,qwen3")
    page.go_back()
    page.wait_for_url("**/#compare=llama,olmo2")
    expect(page.locator("select[name=b]")).to_have_value("olmo2")
    page.reload()
    expect(page.locator("select[name=b]")).to_have_value("olmo2")
    browser_checks.add(6)


def test_back_to_the_page_without_a_pair(atlas, browser_checks):
    page = atlas("en")
    pick(page, "llama", "qwen3")
    page.go_back()
    expect(page.locator(ANSWER)).to_have_count(0)
    page.go_forward()
    page.locator(ANSWER).first.wait_for()
    browser_checks.add(2)


def test_layers(atlas, browser_checks):
    """Where layers differ one chooses among them; the address holds the layer."""
    page = atlas("en", "#compare=deepseek_v3,kimi_linear:full_attention")
    page.locator(ANSWER).first.wait_for()
    layer = page.locator("select[name=b_layer]")
    expect(layer).to_be_visible()
    expect(layer).to_have_value("full_attention")
    expect(page.locator("select[name=a_layer]")).to_be_hidden()
    layer.select_option("linear_attention")
    page.wait_for_url("**kimi_linear:linear_attention")
    expect(page.locator("model-compare svg").nth(1)).to_contain_text("LinearAttention")
    browser_checks.add(4)


@pytest.mark.parametrize(
    ("place", "line"),
    first_quick(
        ("#compare=llama", "An address names two architectures"),
        ("#compare=llama,llam", "The atlas has no architecture llam"),
        ("#compare=%E0%A4%A,llama", "The atlas has no architecture %E0%A4%A"),
        (
            "#compare=llama,<img src=x onerror=alert(1)>",
            "The atlas has no architecture",
        ),
        ("#compare=llama,llama", "Twice llama"),
        ("#compare=llama,reformer", "reformer was not resolved"),
    ),
)
def test_a_wrong_address_is_one_line(place, line, atlas, browser_checks):
    page = atlas("en", place)
    expect(page.locator("model-compare .line")).to_contain_text(line)
    assert page.locator(ANSWER).count() == 0
    assert page.locator("model-compare img").count() == 0
    browser_checks.add(2)


def test_the_other_language_keeps_the_pair(atlas, browser_checks):
    page = atlas("en", "#compare=llama,qwen3")
    page.locator(ANSWER).first.wait_for()
    page.locator("button[aria-label]:has(+ .md-select__inner)").hover()
    page.locator(".md-select__link[hreflang=zh]").click()
    page.wait_for_url("**/zh/**#compare=llama,qwen3")
    page.locator(ANSWER).first.wait_for()
    browser_checks.add()


def test_from_another_page(site, open_page, browser_checks):
    """Instant navigation to a pair, and back."""
    page = open_page()
    page.goto(f"{site[1]}en/practice/port-a-norm/")
    awake(page)
    page.locator(".md-content a[href*='model-atlas']").first.click()
    page.locator("model-compare form").wait_for()
    pick(page, "llama", "qwen3")
    page.locator("model-compare ol a[href*='port-a-norm']").first.click()
    page.locator("#port-a-norm").wait_for()
    page.go_back()
    page.locator(ANSWER).first.wait_for()
    browser_checks.add(3)


def test_without_scripts_the_pairs_are_a_table(site, open_page, browser_checks):
    page = open_page(java_script_enabled=False)
    page.goto(f"{site[1]}en/{PAGE}")
    assert page.locator("table.pairs tbody tr").count() > 11
    assert "needs JavaScript" in page.locator("model-compare").inner_text()
    assert page.locator("model-compare select").count() == 0
    steps = page.locator("table.pairs details li")
    assert not steps.first.is_visible()
    page.locator("table.pairs summary").first.click()
    assert steps.first.is_visible()
    box = page.locator("table.pairs").bounding_box()
    assert box["x"] + box["width"] <= page.viewport_size["width"]
    browser_checks.add(5)


def test_it_says_that_it_loads(atlas, browser_checks):
    """A slow line is no silence: the status says what is under way."""
    page = atlas("en")
    release = hold(page, "**/atlas-compare.js*")
    page.locator("select[name=a]").select_option("llama")
    page.locator("select[name=b]").select_option("qwen3")
    line = page.locator("model-compare .line")
    expect(line).to_have_text("Loading the atlas …")
    release()
    expect(line).to_contain_text("Differences from llama")
    browser_checks.add(2)


def test_tested_code_stands_under_a_step(atlas, browser_checks):
    page = atlas("en", "#compare=llama,gemma3_text", viewport=VIEWPORTS["phone"])
    page.locator(ANSWER).first.wait_for()
    code = page.locator("model-compare ol details", has_text="def gain_of")
    assert not code.locator("pre").is_visible()
    code.locator("summary").click()
    assert code.locator("pre").is_visible() and fits(page, VIEWPORTS["phone"]["width"])
    browser_checks.add(3)


# Where the atlas's own words lead, outside of the practice pages.
LED_TO = {
    "reference/bugs.md": ("axis", "formula", "placement", "precision"),
    "rmsnorm/low-precision.md": ("cast-order", "output-dtype"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The offline build of the practice pages alone."""
    project = Project(tmp_path_factory.mktemp("project"))
    project.keep_only("practice")
    front = f"---\ntitle: A page\ndescription: {'A page. ' * 8}\n---\n\n"
    for language, (name, ids) in product(("zh", "en"), LED_TO.items()):
        page = project.page(name, language)
        page.parent.mkdir(exist_ok=True)
        heads = (f"## {id} {{ #{id} }}\n" for id in ids)
        nav = project.root / "docs" / language / "mkdocs.yml"
        project.edit(nav, "\nnav:\n", f"\nnav:\n  - {name}: {name}\n")
        page.write_text(front + "# A page { #a-page }\n\n" + "\n".join(heads))
    shutil.copytree(ROOT / "snippets", project.root / "snippets", dirs_exist_ok=True)
    done = project.run("scripts/build.py", "site", "--offline", seconds=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return project.root / offline.FOLDER.name / offline.NAME


@pytest.mark.slow  # builds the practice pages once more
@pytest.mark.parametrize("language", ["zh", "en"])
def test_opened_as_a_file(language, files, open_page, browser_checks):
    page, problems = open_page(), []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(
        f"{files.as_uri()}/{language}/practice/model-atlas.html#compare=llama,glm4"
    )
    page.locator(ANSWER).first.wait_for()
    pick(page, "llama", "gemma3_text")
    page.wait_for_url("**#compare=llama,gemma3_text")
    page.locator("model-compare figcaption a").first.click()
    page.wait_for_url("**/blocks-h-m.html#llama")
    assert not problems
    browser_checks.add(3)
