"""Typed queries find their page, in the middle of titles and sentences too."""

import pytest

# (query, page that must be among the first three)
CHINESE = [
    ("RMSNorm", "rmsnorm/rms-norm/"),
    ("均方根", "rmsnorm/rms-norm/"),
    ("反向传播", "rmsnorm/rms-norm/"),
    ("不变性", "rmsnorm/rms-norm/"),
    ("残差流", "rmsnorm/rms-norm/"),
    ("精度", "rmsnorm/low-precision/"),
    ("上溢", "rmsnorm/low-precision/"),
    ("舍入", "rmsnorm/low-precision/"),
    ("带宽", "rmsnorm/speed/"),
    ("深层堆叠", "labs/deep-stack/"),
]
ENGLISH = [
    ("RMSNorm", "rmsnorm/rms-norm/"),
    ("backward pass", "rmsnorm/rms-norm/"),
    ("invariance", "rmsnorm/rms-norm/"),
    ("residual stream", "rmsnorm/rms-norm/"),
    ("pRMSNorm", "rmsnorm/rms-norm/"),
    ("overflow", "rmsnorm/low-precision/"),
    ("bfloat16", "rmsnorm/low-precision/"),
    ("bandwidth", "rmsnorm/speed/"),
    ("bytes", "rmsnorm/speed/"),
    ("deep stack", "labs/deep-stack/"),
]
QUERIES = [("zh", *q) for q in CHINESE] + [("en", *q) for q in ENGLISH]


def results(page, query: str) -> list[str]:
    """Addresses of the hits, after typing as a reader does."""
    page.keyboard.press("/")
    box = page.locator("[data-md-component=search-query]")
    box.wait_for(state="visible")
    box.press_sequentially(query)
    page.locator(".md-search-result__meta:not(:text('初始化'))").wait_for()
    page.wait_for_timeout(700)
    links = page.locator(".md-search-result__link").all()
    return [link.get_attribute("href").split("?")[0].split("#")[0] for link in links]


@pytest.mark.parametrize(("language", "query", "expected"), QUERIES)
def test_query(language, query, expected, site, open_page, browser_checks):
    page = open_page()
    page.goto(site[1] + language + "/")
    page.wait_for_load_state("networkidle")
    found = list(dict.fromkeys(results(page, query)))
    home = site[1] + language + "/"
    assert home + expected in found[:3], found
    assert all(link.startswith(home) for link in found), "a hit in another language"
    marks = [m.inner_text() for m in page.locator(".md-search-result mark").all()]
    assert marks, "nothing is marked in the hits"
    browser_checks.add()


@pytest.mark.parametrize(("language", "query"), [("zh", "葡萄"), ("en", "zebrafish")])
def test_no_hits(language, query, site, open_page, browser_checks):
    page = open_page()
    page.goto(site[1] + language + "/")
    page.wait_for_load_state("networkidle")
    assert results(page, query) == []
    browser_checks.add()
