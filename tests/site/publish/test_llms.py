"""Pages for readers that are programs: which, in what order, and what they say."""

from types import SimpleNamespace

import pytest

from scripts.site.pages import page_parts
from scripts.site.pages.page_parts import Part
from scripts.site.publish import llms


def page(uri, included=True, **meta):
    inclusion = SimpleNamespace(is_included=lambda: included)
    target = uri.removesuffix(".md") + "/index.html"
    file = SimpleNamespace(
        src_uri=uri, abs_src_path=f"/{uri}", dest_uri=target, inclusion=inclusion
    )
    return SimpleNamespace(file=file, meta=meta, title="In the menu")


@pytest.fixture
def site(tmp_path, monkeypatch):
    def parts(path, language, base):
        return [
            Part("text", f"Text of {path.name} in {language} at {base} 甲"),
            Part("code", "x = 1", "a.py"),
            Part("output", "1", "a.out"),
        ]

    monkeypatch.setattr(page_parts, "once", parts)

    def write(*pages, url="https://example.org/en/"):
        config = SimpleNamespace(
            theme={"language": "en"},
            site_url=url,
            site_dir=str(tmp_path),
            site_name="Name",
            site_description="What it is",
            extra={"nav_object": SimpleNamespace(pages=pages)},
        )
        for each in pages:
            target = tmp_path / each.file.dest_uri
            target.parent.mkdir(parents=True, exist_ok=True)
        llms.write(config)
        return tmp_path

    return write


def test_every_page_of_the_navigation_is_listed_and_has_a_twin(site):
    folder = site(
        page("part/a.md", title="A", description="Of a"),
        page("b.md", title="B in full"),
        page("lab.ipynb"),
        page("hidden.md", included=False),
        page("repeats.md", search={"exclude": True}),
        page("found.md", search={"exclude": False}),
    )
    base = "https://example.org/en/"
    assert (folder / "llms.txt").read_text(encoding="utf-8") == (
        "# Name\n\n> What it is\n\n"
        f"- [A]({base}part/a/index.md): Of a\n"
        f"- [B in full]({base}b/index.md): \n"
        f"- [In the menu]({base}found/index.md): \n"
    )
    text = (folder / "part/a/index.md").read_text(encoding="utf-8")
    assert text == (
        f"Text of a.md in en at {base} 甲\n\n```python\nx = 1\n```\n\n```text\n1\n```\n"
    )
    full = (folder / "llms-full.txt").read_text(encoding="utf-8")
    assert full.startswith(text + "\n\nText of b.md") and full.count("x = 1") == 3
    assert not (folder / "repeats/index.md").exists()


def test_without_an_address_links_begin_at_the_root(site):
    text = (site(page("b.md"), url=None) / "llms.txt").read_text(encoding="utf-8")
    assert "- [In the menu](/b/index.md): \n" in text
