"""Every English page, at both widths and in both schemes."""

import pytest

from tests.browser.conftest import urls
from tests.browser.crawl import visit


@pytest.mark.parametrize("path", urls("en"))
def test_page(path, site, tab, browser_checks, record_property, clean):
    visit(path, site, tab, browser_checks, record_property, clean)
