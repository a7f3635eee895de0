"""Every English page, at both widths and in both schemes."""

import pytest

from tests.browser.conftest import urls
from tests.browser.crawl import visit


@pytest.mark.parametrize("path", urls("en"))
def test_page(path, site, open_page, browser_checks, record_property):
    visit(path, site, open_page, browser_checks, record_property)
