"""Hands the real pages to the laws.

``page`` is each page, ``twins`` each pair, ``spoken`` each page and each lab's text.
"""

import pytest

from tests.pages.page_prose import EN, LABS, ZH, Page


def pytest_generate_tests(metafunc):
    pages = [*ZH.values(), *EN.values()]
    if "page" in metafunc.fixturenames:
        metafunc.parametrize("page", pages, ids=lambda page: page.where)
    if "spoken" in metafunc.fixturenames:
        everything = [*pages, *LABS]
        ids = [f"{page.lang} {page.where}" for page in everything]
        metafunc.parametrize("spoken", everything, ids=ids)
    if "twins" in metafunc.fixturenames:
        both = sorted(ZH.keys() & EN.keys())
        metafunc.parametrize("twins", [(ZH[p], EN[p]) for p in both], ids=both)


@pytest.fixture
def pages() -> list[Page]:
    return [*ZH.values(), *EN.values()]


@pytest.fixture(autouse=True)
def counted(request):
    """Pages under a law count in the closing line."""
    params = getattr(getattr(request.node, "callspec", None), "params", {})
    seen = [params["page"]] if "page" in params else params.get("twins", ())
    request.node.user_properties += [("page", page.where) for page in seen]
