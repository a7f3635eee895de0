"""First load of each page: HTML, CSS and script, before compression."""

import pytest

from tests.browser.conftest import urls

TEXT_PAGE = 600_000  # bytes
LAB_HTML = 200_000
KINDS = ("document", "stylesheet", "script")
PAGES = [*urls("zh"), *urls("en")]


@pytest.mark.parametrize("path", PAGES)
def test_first_load(path, site, open_page, browser_checks, record_property):
    page = open_page()
    sizes = {}

    def add(response):
        kind = response.request.resource_type
        worker = response.url.endswith(".js")
        if kind in KINDS or worker:
            sizes[response.url] = len(response.body())

    page.on("response", add)
    page.goto(site[1] + path)
    page.wait_for_load_state("networkidle")
    total = sum(sizes.values())
    html = sizes[site[1] + path]
    line = f"first load of {path}: {total / 1000:.0f} KB, HTML {html / 1000:.0f} KB"
    record_property("measured", line)
    assert total <= TEXT_PAGE, sizes
    if "/labs/" in path:
        assert html <= LAB_HTML
    browser_checks.add()
