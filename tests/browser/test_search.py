"""What people type finds its page; the index comes when somebody reaches for it."""

import re

import pytest
from playwright.sync_api import expect

from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import LANGUAGES, ROOT
from tests.browser.conftest import awake
from tests.lanes import first_quick

QUERIES = read_yaml(ROOT / "tests/browser/queries.yml")
LEAST = 200  # queries a language

# Asks the page's own search worker, as its search box does.
ASK = """async ([queries, worker]) => {
  const file = () => fetch("search/search_index.json").then((got) => got.json());
  const index = window.__index ?? (await file());
  const own = new Worker(worker);
  const ask = (message) => new Promise((resolve) => {
    const heard = (event) => resolve(event.data.data);
    own.addEventListener("message", heard, { once: true });
    own.postMessage(message);
  });
  await ask({ type: 0, data: { ...index, options: { suggest: false } } });
  const found = [];
  for (const query of queries) {
    const { items } = await ask({ type: 2, data: query });
    found.push(items.slice(0, 3).map(([page]) => page.location.split("#")[0]));
  }
  own.terminate?.();
  return found;
}"""


def first_three(page, language: str) -> list[list[str]]:
    """For each query of the table, the pages of the first three hits."""
    queries = [str(row["q"]) for row in QUERIES[language]]
    config = "JSON.parse(document.getElementById('__config').textContent).search"
    worker = page.evaluate(f"new URL({config}, location.href).href")
    return page.evaluate(ASK, [queries, worker])


def missed(language: str, found: list[list[str]]) -> list[str]:
    """The queries whose page is not among the first three, or is but should not be."""
    return [
        f"{row['q']}: {three}"
        for row, three in zip(QUERIES[language], found, strict=True)
        if ("miss" not in row)
        != bool(
            {*([row["page"]] if isinstance(row["page"], str) else row["page"])}
            & {address.removesuffix("index.html") for address in three}
        )
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_table_of_queries(language, site, open_page, browser_checks):
    page = open_page()
    page.goto(f"{site[1]}{language}/")
    found = first_three(page, language)
    assert missed(language, found) == []
    browser_checks.add(len(found))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_holds_what_people_ask(language):
    rows, sources = QUERIES[language], QUERIES["sources"]
    queries = [row["q"] for row in rows]
    assert len(set(queries)) == len(queries) >= LEAST
    assert sum("from" in row for row in rows) * 2 >= len(rows)
    assert {row["from"] for row in rows if "from" in row} <= set(sources)
    for row in rows:
        for page in [row["page"]] if isinstance(row["page"], str) else row["page"]:
            stem = page.removesuffix("/")
            folder = ROOT / "docs" / language / "pages"
            assert (folder / f"{stem}.md").is_file() or (
                folder / stem / "index.md"
            ).is_file(), page


def test_a_miss_is_noticed():
    row = QUERIES["en"][0]
    found = [["nowhere/"] if r.get("miss") else r["page"] for r in QUERIES["en"][1:]]
    others = [["reference/glossary/"]] + [[pages] for pages in found]
    flat = [[p[0] if isinstance(p, list) else p for p in three] for three in others]
    assert missed("en", flat) == [f"{row['q']}: ['reference/glossary/']"]


def hits(page) -> list[str]:
    """Addresses of the hits as they stand, read all at once."""
    links = page.locator(".md-search-result__link").evaluate_all(
        "links => links.map((link) => link.getAttribute('href'))"
    )
    return list(dict.fromkeys(link.split("?")[0].split("#")[0] for link in links))


def results(page, query: str, wanted=lambda found: True) -> list[str]:
    """Addresses of the hits, after typing as a reader does.

    A busy machine shows the hits of half a word for a while: up to 30 seconds are
    given until the hits are as wanted.
    """
    page.keyboard.press("/")
    box = page.locator("[data-md-component=search-query]")
    box.wait_for(state="visible")
    box.press_sequentially(query)
    page.locator(".md-search-result__meta:not(:text('初始化'))").wait_for()
    for _ in range(300):
        page.wait_for_timeout(100)
        if wanted(found := hits(page)):
            break
    return found


@pytest.mark.parametrize(
    ("language", "query", "expected"),
    first_quick(
        ("zh", "层归一化", "foundations/layer-norm/"),
        ("zh", "手写RMSNorm", "rmsnorm/rms-norm/"),
        ("zh", "深层网络里的信号", "labs/deep-stack/"),
        ("en", "batch normalization", "foundations/batch-norm-vs-layer-norm/"),
        ("en", "why does fp16 rmsnorm overflow", "rmsnorm/low-precision/"),
        ("en", "Welford", "foundations/layer-norm/"),
    ),
)
def test_typed_query(language, query, expected, site, open_page, browser_checks):
    page = open_page()
    page.goto(site[1] + language + "/")
    awake(page)
    home = site[1] + language + "/"
    found = results(page, query, lambda found: home + expected in found[:3])
    assert home + expected in found[:3], found
    assert all(link.startswith(home) for link in found), "a hit in another language"
    page.locator(".md-search-result mark").first.wait_for(state="attached")
    assert page.locator(".md-search-result pre").count() == 0, "a hit shows a listing"
    browser_checks.add()


NOTHING = {"zh": "没有找到符合条件的结果", "en": "No matching documents"}
ABSENT = {"zh": "没有哪一页有“葡萄”这个词。", "en": "No page has the word “zebrafish”."}


@pytest.mark.parametrize(("language", "query"), [("zh", "葡萄"), ("en", "zebrafish")])
def test_no_hits(language, query, site, open_page, browser_checks):
    page = open_page()
    page.goto(site[1] + language + "/")
    awake(page)
    results(page, query)
    page.locator(".md-search-result__meta", has_text=NOTHING[language]).wait_for()
    absent = page.locator("[data-absent]:visible")
    expect(absent).to_have_text(ABSENT[language])
    assert hits(page) == []
    page.locator("[data-md-component=search-query]").fill(f"RMSNorm {query}")
    page.locator(".md-search-result__link").first.wait_for()
    expect(absent).to_have_text(ABSENT[language])
    browser_checks.add(3)


ASKED = {
    "zh": ("大模型为什么用 RMSNorm 代替 LayerNorm", "面试：RMSNorm"),
    "en": ("Why did models move from LayerNorm to RMSNorm", "Interview: RMSNorm"),
}
SEEN = """() => {
  const wrap = document.querySelector(".md-search__scrollwrap");
  const frame = wrap.getBoundingClientRect();
  const items = [...document.querySelectorAll(".md-search-result__item")];
  const bottom = Math.min(frame.bottom, innerHeight);
  return items.filter((item) => item.getBoundingClientRect().bottom <= bottom).length;
}"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_four_results_at_a_glance_with_their_best_section(
    language, site, open_page, browser_checks
):
    page = open_page(viewport={"width": 1280, "height": 800})
    page.goto(site[1] + language + "/")
    awake(page)
    query, bank = ASKED[language]
    results(page, query, lambda found: len(found) > 3)
    item = page.locator(".md-search-result__item", has_text=bank).first
    section = re.compile("#why-rmsnorm-replaced-layernorm")
    expect(item.locator("> a").nth(1)).to_have_attribute("href", section)
    page.wait_for_function(f"() => ({SEEN})() >= 4")
    browser_checks.add(2)


def _asked(page) -> list[str]:
    """Requests for a search index or its worker, from now on."""
    asked = []
    page.on(
        "request",
        lambda request: "/search" in request.url and asked.append(request.url),
    )
    return asked


REACHES = {
    "key": lambda page: page.keyboard.press("/"),
    "mouse": lambda page: page.locator("[data-md-component=search-query]").click(),
    "focus": lambda page: page.locator("[data-md-component=search-query]").focus(),
}


@pytest.mark.parametrize("how", first_quick(*REACHES))
def test_the_index_waits_for_a_reader(how, site, open_page, browser_checks):
    page = open_page()
    asked = _asked(page)
    page.goto(site[1] + "en/")
    awake(page)
    page.mouse.wheel(0, 500)
    page.keyboard.press("ArrowDown")
    page.locator(".md-content a[href*='rms-norm']").first.click()  # no new document
    page.wait_for_selector("h1#rms-norm")
    assert asked == []
    with page.expect_request("**/search_index.json"):
        REACHES[how](page)
    browser_checks.add()


def test_a_phone_reaches_for_the_search(site, open_page, browser_checks):
    page = open_page(viewport={"width": 390, "height": 844}, has_touch=True)
    asked = _asked(page)
    page.goto(site[1] + "zh/")
    awake(page)
    assert asked == []
    with page.expect_request("**/search_index.json"):
        page.locator("label[for=__search].md-header__button").tap()
    browser_checks.add()


def test_an_address_with_a_query_does_not_wait(site, open_page, browser_checks):
    page = open_page()
    asked = _asked(page)
    with page.expect_request("**/search.*.js"):
        page.goto(site[1] + "en/?q=RMSNorm")
    page.locator(".md-search-result__link").first.wait_for(state="attached")
    index, worker = (url.rpartition("/")[2] for url in asked)
    assert index == "search_index.json" and worker.startswith("search.")
    browser_checks.add()
