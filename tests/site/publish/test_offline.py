"""The folder for readers without a server, made of a small site."""

import io
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest

from scripts.site.publish import offline
from scripts.site.reading.source import SourceError

HOME = '<a href="zh/">甲</a> <a href="en/">A</a> <a href="en/b/">B</a>'
PAGE = '<script src="{}assets/site.js" type="module"></script>甲'
GONE = ("404.html", "sitemap.xml.gz", "robots.txt", "llms-full.txt", "b/index.md")


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Build a site of two pages a language; what MkDocs was asked."""
    monkeypatch.setattr(offline, "FOLDER", tmp_path)
    asked = []

    def write(site, name, text):
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def mkdocs(command, cwd, env):
        site = tmp_path / offline.NAME
        asked.append((command, cwd, env["OFFLINE"]))
        write(site, "index.html", HOME)
        write(site, "portal.js", 'go("zh/")')
        for language in ("zh", "en"):
            write(site, f"{language}/index.html", PAGE.format(""))
            write(site, f"{language}/b/c/index.html", PAGE.format("../../"))
            write(site, f"{language}/assets/site.js", "const a = 1;\n")
            for name in GONE:
                write(site, f"{language}/{name}", "")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", mkdocs)
    return tmp_path, asked, write


def test_files_open_without_a_server(built):
    folder, asked, _ = built
    target = offline.build()
    site = folder / offline.NAME
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir"]
    assert asked == [([*command, str(site)], offline.ROOT, "true")]
    home = (site / "index.html").read_text(encoding="utf-8")
    assert home == HOME.replace('zh/"', 'zh/index.html"').replace(
        'en/"', 'en/index.html"'
    )
    assert (site / "portal.js").read_text() == 'go("zh/index.html")'
    for language in ("zh", "en"):
        script = (site / language / "assets/site.js").read_text()
        assert script == "{\nconst a = 1;\n}\n"
        for name, root in (("index.html", ""), ("b/c/index.html", "../../")):
            page = (site / language / name).read_text(encoding="utf-8")
            assert page == f'<script src="{root}assets/site.js" defer></script>甲'
        assert not any((site / language / name).exists() for name in GONE)
    assert target == folder / "norms-measured.zip"
    with zipfile.ZipFile(io.BytesIO(target.read_bytes())) as archive:
        names = archive.namelist()
        assert names == sorted(names) and len(names) == 8
        assert archive.read(f"{offline.NAME}/index.html").decode() == home


def test_a_page_without_its_script_stops_the_build(built):
    folder, _, write = built
    offline.build()
    site = folder / offline.NAME / "en"
    write(site, "index.html", "<p>nothing</p>")
    with pytest.raises(SourceError, match=r"en/index\.html: loads no src="):
        offline._without_modules(site)


def test_a_build_that_fails_packs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(offline, "FOLDER", tmp_path)
    stopped = SimpleNamespace(returncode=1)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: stopped)
    with pytest.raises(SourceError, match="the offline build stopped, see above"):
        offline.build()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("enabled", [True, False])
def test_the_shim_is_published_for_files_alone(enabled, monkeypatch):
    plugin = SimpleNamespace(config=SimpleNamespace(enabled=enabled))
    config = SimpleNamespace(plugins={"material/offline": plugin}, extra={})
    made = []

    class File:
        @staticmethod
        def generated(*of, **content):
            made.append((of, content))
            return "file"

    monkeypatch.setattr("mkdocs.structure.files.File", File)
    files = []
    offline.prepare(config)
    offline.add(files, config)
    assert offline.wanted(config) is enabled
    assert config.extra == ({"polyfills": [offline.SHIM_URI]} if enabled else {})
    assert files == ["file"] * enabled
    shim = offline.SHIM.read_text(encoding="utf-8")
    assert made == [((config, offline.SHIM_URI), {"content": shim})] * enabled
