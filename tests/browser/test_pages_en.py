"""Every English page, at both widths and in both schemes."""

import pytest

from tests.browser.conftest import VIEWPORTS, urls
from tests.browser.crawl import visit


@pytest.mark.parametrize("viewport", VIEWPORTS)
@pytest.mark.parametrize("path", urls("en"))
def test_page(path, viewport, site, open_page, browser_checks, record_property):
    measured = record_property if viewport == "desktop" else None
    visit(path, viewport, site, open_page, browser_checks, measured)
