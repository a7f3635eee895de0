"""Every English page, at both widths and in both schemes."""

import pytest

from tests.browser.crawl import pages, visit


@pytest.mark.parametrize(("path", "views"), pages("en"))
def test_page(path, views, site, tab, browser_checks, record_property):
    visit(path, site, tab, browser_checks, views, record_property)
