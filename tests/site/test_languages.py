"""Both languages beside the portal: built anew only where something changed."""

import logging
from types import SimpleNamespace

import pytest

from scripts.site import languages


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A page a language and a file of data; what was built, and on what index."""
    built = []

    def build_language(code, root, last_index=None):
        built.append((code, last_index))
        return f"index of {code} {len(built)}"

    monkeypatch.setattr(languages, "ROOT", tmp_path)
    monkeypatch.setattr(languages, "build_language", build_language)
    for name in ("docs/zh/pages/a.md", "docs/en/pages/a.md", "docs/data/a.yml"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("")
    (tmp_path / "docs/base.yml").write_text("")
    (tmp_path / "snippets").mkdir()
    yield tmp_path, built
    languages.on_startup(command="build", dirty=False)


def config(tmp_path, **more):
    made = {"strict": False, "site_dir": str(tmp_path), "site_url": None, "extra": {}}
    return SimpleNamespace(**made | more)


@pytest.mark.parametrize(
    ("url", "base"),
    [
        (None, "/"),
        ("https://a.org", "/"),
        ("https://a.org/b", "/b/"),
        ("https://a.org/b/", "/b/"),
    ],
)
def test_the_base_ends_in_a_slash(url, base, tmp_path):
    found = languages.on_config(config(tmp_path, site_url=url))
    assert found.extra == {"base": base, "languages": languages.LANGUAGES}


def test_a_plain_build_builds_both_each_time(project):
    folder, built = project
    languages.on_startup(command="build", dirty=False)
    for _ in range(2):
        languages.on_post_build(config(folder))
    assert built == [("zh", None), ("en", None)] * 2


def test_serving_builds_what_changed(project):
    folder, built = project
    languages.on_startup(command="serve", dirty=True)
    languages.on_post_build(config(folder))
    assert built == [("zh", None), ("en", None)]
    languages.on_post_build(config(folder))
    assert len(built) == 2  # nothing changed

    def changed(name):
        built.clear()
        path = folder / name
        path.write_text("x")
        stamp = path.stat().st_mtime_ns + 10**9
        languages.os.utime(path, ns=(stamp, stamp))
        languages.on_post_build(config(folder))
        return built

    # A page alone: on the last index, in its language.
    assert changed("docs/zh/pages/a.md") == [("zh", "index of zh 1")]
    # Data, a snippet or the settings: everything; a new page: its language.
    assert changed("docs/data/a.yml") == [("zh", None), ("en", None)]
    assert changed("snippets/a.py") == [("zh", None), ("en", None)]
    assert changed("docs/base.yml") == [("zh", None), ("en", None)]
    assert changed("docs/en/pages/b.md") == [("en", None)]
    assert changed("docs/other.yml") == []  # nothing is built from it
    (folder / "docs/en/pages/b.md").unlink()
    assert changed("docs/en/pages/a.md") == [("en", None)]


def test_a_strict_build_says_what_the_laws_find(project, monkeypatch, caplog):
    folder, _ = project
    asked = []

    def problems(site, address, any_inline):
        asked.append((site, address, any_inline))
        return ["one problem"]

    monkeypatch.setattr(languages.markup, "problems", problems)
    monkeypatch.setattr(languages.blocks, "problems", lambda site: ["another"])
    monkeypatch.delenv("OFFLINE", raising=False)
    with caplog.at_level(logging.WARNING, logger=languages.log.name):
        languages.on_post_build(config(folder))
        assert not caplog.messages
        languages.on_post_build(config(folder, strict=True))
    assert caplog.messages == ["one problem", "another"]
    monkeypatch.setenv("OFFLINE", "true")
    languages.on_post_build(config(folder, strict=True, site_url="https://a.org/b/"))
    assert asked == [(folder, "/", False), (folder, "https://a.org/b/", True)]


def test_dirty_builds_are_no_news():
    def record(words):
        return logging.LogRecord("a", logging.WARNING, "b", 1, words, (), None)

    assert not languages._is_news(record("A 'dirty' build is being performed"))
    assert languages._is_news(record("Another"))


def test_an_index_keeps_pages_that_were_not_built():
    def index(*places):
        return SimpleNamespace(entries=[{"location": place} for place in places])

    anew = index("a/", "a/#x")
    languages._merge(anew, index("a/", "a/#old", "b/", "b/#y"))
    assert [e["location"] for e in anew.entries] == ["a/", "a/#x", "b/", "b/#y"]


def test_the_server_watches_what_both_are_built_from():
    watched = []
    server = SimpleNamespace(watch=watched.append)
    assert languages.on_serve(server) is server
    assert watched == [f"docs/{name}" for name in languages.WATCHED] + ["snippets"]


def test_a_language_is_built_below_the_site_on_the_index_of_the_last_build(
    tmp_path, monkeypatch
):
    """With an index, only what changed is built, and the index is written anew."""
    (tmp_path / "en" / "search").mkdir(parents=True)
    told = []
    index = SimpleNamespace(
        entries=[{"location": "a/"}], generate_search_index=lambda _: "甲"
    )
    plugins = {"material/search": SimpleNamespace(search_index=index)}
    held = type("Plugins", (dict,), {})(plugins)
    held.on_startup = lambda command, dirty: told.append((command, dirty))
    held.on_shutdown = lambda: told.append("down")

    def load(path, **options):
        told.append((path, options))
        site = options["site_dir"]
        return SimpleNamespace(plugins=held, extra={}, site_dir=site)

    monkeypatch.setattr(languages, "load_config", load)
    monkeypatch.setattr(languages, "build", lambda config, dirty: told.append(dirty))
    root = config(tmp_path, site_url="https://a.org/b", extra={"base": "/b/"})
    assert languages.build_language("en", root) is index
    options = {
        "site_dir": str(tmp_path / "en"),
        "site_url": "https://a.org/b/en/",
        "strict": False,
    }
    path = "docs/en/mkdocs.yml"
    assert told == [(path, options), ("build", False), False, "down"]
    written = tmp_path / "en" / "search" / "search_index.json"
    assert not written.exists()
    last = SimpleNamespace(entries=[{"location": "b/"}])
    languages.build_language("en", root, last)
    assert told[5:] == [("build", True), True, "down"]
    assert written.read_text(encoding="utf-8") == "甲"
    assert [entry["location"] for entry in index.entries] == ["a/", "b/"]
