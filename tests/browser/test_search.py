"""Typed queries find their page, in the middle of titles and sentences too."""

import pytest

# (query, page that must be among the first three)
CHINESE = [
    ("有效学习率", "foundations/why-normalize/"),
    ("滑动统计量", "foundations/batch-norm-vs-layer-norm/"),
    ("权重归一化", "foundations/norm-family/"),
    ("上溢", "rmsnorm/low-precision/"),
    ("带宽", "kernels/memory-bound/"),
    ("预热", "placement/warm-up/"),
    ("深度诅咒", "placement/curse-of-depth/"),
    ("夹心归一化", "placement/sandwich-norm/"),
    ("熵坍缩", "attention/qk-norm/"),
    ("软上限", "attention/soft-capping/"),
    ("三明治归一化", "placement/sandwich-norm/"),
    ("深层堆叠", "labs/deep-stack/"),
]
ENGLISH = [
    ("pRMSNorm", "rmsnorm/rms-norm/"),
    ("Welford", "foundations/layer-norm/"),
    ("spectral norm", "foundations/norm-family/"),
    ("overflow", "rmsnorm/low-precision/"),
    ("bandwidth", "rmsnorm/speed/"),
    ("warm-up", "placement/warm-up/"),
    ("torchscale", "placement/deepnorm/"),
    ("PB-Relax", "placement/sandwich-norm/"),
    ("head scale", "placement/normformer/"),
    ("QK-Clip", "attention/qk-norm/"),
    ("FlexAttention", "attention/soft-capping/"),
    ("DyT", "frontier/without-normalization/"),
    ("deep stack", "labs/deep-stack/"),
]
QUERIES = [("zh", *q) for q in CHINESE] + [("en", *q) for q in ENGLISH]


def hits(page) -> list[str]:
    """Addresses of the hits as they stand, read all at once."""
    links = page.locator(".md-search-result__link").evaluate_all(
        "links => links.map((link) => link.getAttribute('href'))"
    )
    return list(dict.fromkeys(link.split("?")[0].split("#")[0] for link in links))


def results(page, query: str, wanted=lambda found: True) -> list[str]:
    """Addresses of the hits, after typing as a reader does.

    A busy machine shows the hits of half a word for a while: up to 10 seconds are
    given until the hits are as wanted.
    """
    page.keyboard.press("/")
    box = page.locator("[data-md-component=search-query]")
    box.wait_for(state="visible")
    box.press_sequentially(query)
    page.locator(".md-search-result__meta:not(:text('初始化'))").wait_for()
    for _ in range(14):
        page.wait_for_timeout(700)
        if wanted(found := hits(page)):
            break
    return found


@pytest.mark.parametrize(("language", "query", "expected"), QUERIES)
def test_query(language, query, expected, site, open_page, browser_checks):
    page = open_page()
    page.goto(site[1] + language + "/")
    page.wait_for_load_state("networkidle")
    home = site[1] + language + "/"
    found = results(page, query, lambda found: home + expected in found[:3])
    assert home + expected in found[:3], found
    assert all(link.startswith(home) for link in found), "a hit in another language"
    marks = page.locator(".md-search-result mark").all_inner_texts()
    assert marks, "nothing is marked in the hits"
    browser_checks.add()


@pytest.mark.parametrize(("language", "query"), [("zh", "葡萄"), ("en", "zebrafish")])
def test_no_hits(language, query, site, open_page, browser_checks):
    page = open_page()
    page.goto(site[1] + language + "/")
    page.wait_for_load_state("networkidle")
    assert results(page, query, lambda found: not found) == []
    browser_checks.add()
