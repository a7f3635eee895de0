"""A page without its twin stops the build."""

import pytest

from scripts.site.reading import translations
from scripts.site.reading.source import SourceError


def test_every_page_has_a_twin():
    translations.check()


@pytest.mark.parametrize(("here", "there"), [("zh", "en"), ("en", "zh")])
def test_the_first_page_without_one_is_named(here, there, tmp_path, monkeypatch):
    monkeypatch.setattr(translations, "ROOT", tmp_path)
    for language in ("zh", "en"):
        folder = tmp_path / "docs" / language / "pages" / "part"
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("")
    translations.check()
    for name in ("c.md", "b.md"):
        (tmp_path / "docs" / here / "pages" / "part" / name).write_text("")
    with pytest.raises(SourceError) as caught:
        translations.check()
    pages = f"docs/{here}/pages/part/b.md", f"docs/{there}/pages/part/b.md"
    assert str(caught.value) == "{}: its twin {} is missing".format(*pages)
