"""A page is looked at again as soon as anything changes that its verdict rests on."""

import shutil

import pytest

from tests.browser import crawl, kept
from tests.browser.crawl import visit

ADDRESS = "http://norms.localhost/norms/"
PATH = "en/a/"
ASKED = {ADDRESS + PATH, ADDRESS + "en/a/drawn.svg?v=1", ADDRESS + "en/sitemap.xml"}
LINES = [("length", " 1.0 screens")]
FILES = ("en/a/index.html", "en/a/drawn.svg", "site.css", "worker.js", "font.woff2")


@pytest.fixture
def pages(tmp_path):
    """pages() -> what another run would know of a small site; its folder is made."""
    for name in (*FILES, "en/sitemap.xml", "en/b/index.html"):
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return lambda: kept.Pages(tmp_path / "verdicts", tmp_path / "site", ADDRESS)


def test_a_page_that_did_not_change_is_known(pages, tmp_path):
    assert pages().lines(PATH) is None
    pages().keep(PATH, ASKED, LINES)
    assert pages().lines(PATH) == LINES
    assert pages().lines("en/b/") is None
    for other in ("en/b/index.html", "en/sitemap.xml"):
        (tmp_path / "site" / other).write_text("changed")
    assert pages().lines(PATH) == LINES


@pytest.mark.parametrize("change", ["edited", "gone"])
@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_noticed(name, change, pages, tmp_path):
    pages().keep(PATH, ASKED, LINES)
    file = tmp_path / "site" / name
    file.unlink() if change == "gone" else file.write_text("changed")
    assert pages().lines(PATH) is None


@pytest.mark.parametrize("name", ["new.js", "en/new.css"])
def test_a_new_asset_is_noticed(name, pages, tmp_path):
    pages().keep(PATH, ASKED, LINES)
    (tmp_path / "site" / name).write_text("new")
    assert pages().lines(PATH) is None


def test_the_page_itself_is_always_part_of_it(pages, tmp_path):
    pages().keep(PATH, [], LINES)
    (tmp_path / "site" / FILES[0]).write_text("changed")
    assert pages().lines(PATH) is None


@pytest.mark.parametrize("damage", ["", "{", "{}", "[]"])
def test_a_damaged_verdict_is_none(damage, pages, tmp_path):
    pages().keep(PATH, ASKED, LINES)
    (verdict,) = (tmp_path / "verdicts").iterdir()
    verdict.write_text(damage)
    assert pages().lines(PATH) is None


@pytest.mark.parametrize("name", kept.CODE)
def test_changed_code_judges_anew(name, tmp_path, monkeypatch):
    before = kept.of_the_judge("1")
    for each in kept.CODE:
        shutil.copy(kept.HERE / each, tmp_path)
    monkeypatch.setattr(kept, "HERE", tmp_path)
    assert kept.of_the_judge("1") == before
    with (tmp_path / name).open("a") as file:
        file.write(" ")
    assert kept.of_the_judge("1") != before


def test_another_browser_or_axe_judges_anew(monkeypatch):
    before = kept.of_the_judge("1")
    assert kept.of_the_judge("2") != before
    monkeypatch.setattr(kept, "AXE_SCRIPT", "another")
    assert kept.of_the_judge("1") != before


def test_the_code_is_all_of_the_crawl():
    """What crawl.py imports from here is part of the judge."""
    from_here = {f"{name}.py" for name in ("crawl", "length", "kept", "conftest")}
    assert {*from_here, "looks.js"} == set(kept.CODE)
    for name in from_here:
        for line in (kept.HERE / name).read_text().splitlines():
            if line.strip().startswith("from tests.browser import "):
                imported = line.split("import ")[1].split("#")[0].split(",")
                assert {f"{each.strip()}.py" for each in imported} <= from_here
            elif line.strip().startswith("from tests.browser."):
                assert f"{line.split()[1].rsplit('.', 1)[1]}.py" in from_here


@pytest.mark.parametrize(
    ("said", "wanted"),
    [({}, True), ({"CI": "true"}, False), ({"BROWSER_TESTS": "required"}, False)],
)
def test_ci_looks_at_everything(said, wanted, monkeypatch):
    for name in ("CI", "BROWSER_TESTS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert kept.wanted() is wanted


def test_looks_are_shared_line_by_line(tmp_path):
    one, other = (kept.Looks(tmp_path / "looks") for _ in range(2))
    assert one.unknown(["a", "b"]) == ["a", "b"]
    one.add(["a"])
    assert one.unknown(["a", "b"]) == other.unknown(["a", "b"]) == ["b"]
    line = kept.digest(b"b")
    with (tmp_path / "looks").open("a") as file:
        file.write(line[:9])  # half of it, as it may be read while it is written
        file.flush()
        assert other.unknown(["b"]) == ["b"]
        file.write(line[9:] + "\n")
    assert other.unknown(["a", "b"]) == one.unknown(["a", "b"]) == []


def test_only_a_clean_page_is_kept(site, open_page, tmp_path, browser_checks):
    path, lines = "en/reference/glossary/", []
    pages = kept.Pages(tmp_path, *site)
    page = open_page()

    def planted(route):
        body = (site[0] / path / "index.html").read_text("utf-8")
        body = body.replace("</article>", "<a href=/></a></article>")
        route.fulfill(body=body, content_type="text/html; charset=utf-8")

    def look():
        lines.clear()
        visit(path, site, page, browser_checks, lambda *line: lines.append(line), pages)

    page.route("**/glossary/", planted)
    for _ in range(2):
        with pytest.raises(AssertionError, match="axe"):
            look()
    page.unroute("**/glossary/")
    look()
    loaded = lines[:]
    assert [kind for kind, _ in loaded] == ["measured"]
    page.close()  # from here nothing can be looked at
    look()
    assert lines == [*loaded, ("kept verdict", path)]


def test_a_rule_left_out_is_never_serious(site, open_page, browser_checks):
    page = open_page()
    page.goto(site[1] + "en/reference/glossary/")
    page.evaluate(f"{crawl.AXE_SCRIPT};0")
    impacts = page.evaluate(
        """() => axe._audit.rules.filter(rule => rule.id === 'region').flatMap(rule =>
          [...rule.any, ...rule.all, ...rule.none].map(check =>
            axe._audit.data.checks[check.id ?? check].impact))"""
    )
    assert impacts and not set(impacts) & set(crawl.SERIOUS)
    browser_checks.add(1)
