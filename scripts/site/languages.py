"""MkDocs hook of the root project: build /zh/ and /en/ beside the portal.

Each language is a MkDocs project of its own (docs/zh, docs/en): search, sitemap
and notebooks then work as in any one-language site. The root project lends them
its ``site_dir``, ``site_url`` and ``strict``.

While serving, a change of pages alone builds these pages anew (`make serve` runs
``mkdocs serve --dirty``); a change of anything else builds everything.
"""

import logging
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mkdocs.commands.build import build
from mkdocs.config import load_config

LANGUAGES = {"zh": "简体中文", "en": "English"}
WATCHED = ["base.yml", "zh", "en", "data", "figures", "records", "theme"]
ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.site.laws import blocks, markup  # noqa: E402

log = logging.getLogger("mkdocs.hooks.languages")
os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")


def on_config(config, **_):
    path = urlsplit(config.site_url or "/").path
    config.extra["base"] = path if path.endswith("/") else path + "/"
    config.extra["languages"] = LANGUAGES
    return config


@dataclass(frozen=True)
class Built:
    """What a language was last built from, and the search index of that build."""

    pages: dict[Path, int]
    others: dict[Path, int]
    search_index: object


_dirty = _serving = False
_built: dict[str, Built] = {}


def _is_news(record: logging.LogRecord) -> bool:
    """MkDocs warns of its dirty builds; here what they leave out is built anew."""
    return not record.msg.startswith("A 'dirty' build")


def on_startup(*, command, dirty):
    global _dirty, _serving
    logging.getLogger("mkdocs.commands.build").addFilter(_is_news)
    _dirty, _serving = dirty, command == "serve"
    _built.clear()


def on_post_build(config, **_):
    stamps = _stamps() if _dirty else {}
    for code in LANGUAGES:
        started = time.perf_counter()
        folder = ROOT / "docs" / code / "pages"
        pages = {path: t for path, t in stamps.items() if path.is_relative_to(folder)}
        foreign = ROOT / "docs" / ("en" if code == "zh" else "zh") / "pages"
        others = {
            path: t
            for path, t in stamps.items()
            if path not in pages and not path.is_relative_to(foreign)
        }
        last = _built.pop(code, None)
        same = last and last.others == others and last.pages.keys() == pages.keys()
        if same and last.pages == pages:
            _built[code] = last
            continue
        index = build_language(code, config, last.search_index if same else None)
        if _dirty:
            _built[code] = Built(pages, others, index)
        log.info("%s built in %.2f s", code, time.perf_counter() - started)
    if config.strict:
        address = (config.site_url or "/").rstrip("/") + "/"
        site = Path(config.site_dir)
        offline = bool(os.environ.get("OFFLINE"))
        found = markup.problems(site, address, any_inline=offline)
        for problem in [*found, *blocks.problems(site)]:
            log.warning("%s", problem)


def _stamps() -> dict[Path, int]:
    """When each file that a language is built from was last changed."""
    folders = [ROOT / "docs" / name for name in WATCHED] + [ROOT / "snippets"]
    files = (f for folder in folders for f in (*folder.rglob("*"), folder))
    return {f: f.stat().st_mtime_ns for f in files if f.is_file()}


def build_language(code, root, last_index=None):
    """Build docs/<code> into <site_dir>/<code>; its search index.

    With the index of the last build, only pages that are newer than their output
    are built, and the index keeps what it knew of the others. Raises what MkDocs
    raises.
    """
    site_url = (root.site_url or "/").rstrip("/") + "/"
    config = load_config(
        f"docs/{code}/mkdocs.yml",
        site_dir=os.path.join(root.site_dir, code),
        site_url=f"{site_url}{code}/",
        strict=root.strict,
    )
    config.extra["root_url"] = site_url
    config.extra["serving"] = _serving
    config.extra["alternate"] = [
        {"name": name, "link": f"{root.extra['base']}{other}/", "lang": other}
        for other, name in LANGUAGES.items()
    ]
    dirty = last_index is not None
    config.plugins.on_startup(command="build", dirty=dirty)
    try:
        build(config, dirty=dirty)
    finally:
        config.plugins.on_shutdown()
    index = config.plugins["material/search"].search_index
    if dirty:
        _merge(index, last_index)
        path = Path(config.site_dir, "search", "search_index.json")
        path.write_text(index.generate_search_index(None), encoding="utf-8")
    return index


def _merge(index, last) -> None:
    """Add to a search index what the last one knew of pages not built anew."""

    def page(entry):
        return entry["location"].partition("#")[0]

    anew = {page(entry) for entry in index.entries}
    index.entries += [entry for entry in last.entries if page(entry) not in anew]


def on_serve(server, **_):
    for name in WATCHED:
        server.watch(os.path.join("docs", name))
    server.watch("snippets")
    return server
