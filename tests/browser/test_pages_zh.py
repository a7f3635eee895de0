"""Every Chinese page, at both widths and in both schemes."""

import pytest

from tests.browser.crawl import pages, visit


@pytest.mark.parametrize("path", pages("zh"))
def test_page(path, site, tab, browser_checks, record_property):
    visit(path, site, tab, browser_checks, record_property)
