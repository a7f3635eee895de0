"""The site as a folder that a browser opens without a server, and as a zip of it.

The build is the usual one with Material's offline plugin: links name files, the search
index is a script. A browser refuses modules, workers and folders' index pages at
file:// addresses; what is left of them is replaced here.
"""

import os
import subprocess
import sys
from pathlib import Path

from scripts.site.publish.archive import zipped
from scripts.site.reading.source import LANGUAGES, ROOT, SourceError

FOLDER = ROOT / "site-offline"
NAME = "norms-measured"
SHIM = ROOT / "docs" / "theme" / "iframe-worker" / "shim.js"  # a worker in a frame
SHIM_URI = "assets/javascripts/iframe-worker.js"
# Of no use without a server, or to a reader of pages.
DROPPED = ("404.html", "sitemap.xml*", "robots.txt", "llms*.txt", "*.md", "*.map")
MODULE = ('src="{}assets/site.js" type="module"', 'src="{}assets/site.js" defer')


def wanted(config) -> bool:
    """Whether a language's pages are built to be opened as files."""
    return config.plugins["material/offline"].config.enabled


def prepare(config) -> None:
    """Let a language's pages load the local shim, not the one of another host."""
    if wanted(config):
        config.extra["polyfills"] = [SHIM_URI]


def add(files, config) -> None:
    """Publish the shim where pages load it."""
    if wanted(config):
        from mkdocs.structure.files import File  # measuring needs no MkDocs

        shim = SHIM.read_text(encoding="utf-8")
        files.append(File.generated(config, SHIM_URI, content=shim))


def build() -> Path:
    """Write the folder and the zip; the path of the zip."""
    site = FOLDER / NAME
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir"]
    environment = os.environ | {"OFFLINE": "true"}
    if subprocess.run([*mkdocs, str(site)], cwd=ROOT, env=environment).returncode:
        raise SourceError("the offline build stopped, see above")
    for path in [path for pattern in DROPPED for path in site.rglob(pattern)]:
        path.unlink()
    _open_files(site / "index.html", site / "portal.js")
    for language in LANGUAGES:
        _without_modules(site / language)
    files = sorted(path for path in site.rglob("*") if path.is_file())
    packed = {p.relative_to(FOLDER).as_posix(): p.read_bytes() for p in files}
    target = FOLDER / f"{NAME}.zip"
    target.write_bytes(zipped(packed))
    return target


def _open_files(*pages: Path) -> None:
    """The portal leads to the languages' home pages, not to their folders."""
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for language in LANGUAGES:
            text = text.replace(f'"{language}/"', f'"{language}/index.html"')
        page.write_text(text, encoding="utf-8")


def _without_modules(site: Path) -> None:
    """site.js as a classic script, its names kept to itself."""
    script = site / "assets" / "site.js"
    code = script.read_text(encoding="utf-8")
    script.write_text(f"{{\n{code}}}\n", encoding="utf-8")
    for page in site.rglob("*.html"):
        root = "../" * (len(page.relative_to(site).parts) - 1)
        old, new = (tag.format(root) for tag in MODULE)
        text = page.read_text(encoding="utf-8")
        if old not in text:
            raise SourceError(f"{page.relative_to(FOLDER)}: loads no {old}")
        page.write_text(text.replace(old, new), encoding="utf-8")
