"""MkDocs hook of the root project: build /zh/ and /en/ beside the portal.

Each language is a MkDocs project of its own (docs/zh, docs/en): search, sitemap
and notebooks then work as in any one-language site. The root project lends them
its ``site_dir``, ``site_url`` and ``strict``.
"""

import logging
import os
import time
from urllib.parse import urlsplit

from mkdocs.commands.build import build
from mkdocs.config import load_config

LANGUAGES = {"zh": "简体中文", "en": "English"}
WATCHED = ["base.yml", "zh", "en", "data", "figures", "records", "theme"]

log = logging.getLogger("mkdocs.hooks.languages")
os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")


def on_config(config, **_):
    path = urlsplit(config.site_url or "/").path
    config.extra["base"] = path if path.endswith("/") else path + "/"
    config.extra["languages"] = LANGUAGES
    return config


def on_post_build(config, **_):
    for code in LANGUAGES:
        started = time.perf_counter()
        build_language(code, config)
        log.info("%s built in %.2f s", code, time.perf_counter() - started)


def build_language(code, root):
    """Build docs/<code> into <site_dir>/<code>; raises what MkDocs raises."""
    site_url = (root.site_url or "/").rstrip("/") + "/"
    config = load_config(
        f"docs/{code}/mkdocs.yml",
        site_dir=os.path.join(root.site_dir, code),
        site_url=f"{site_url}{code}/",
        strict=root.strict,
    )
    config.extra["root_url"] = site_url
    config.extra["alternate"] = [
        {"name": name, "link": f"{root.extra['base']}{other}/", "lang": other}
        for other, name in LANGUAGES.items()
    ]
    config.plugins.on_startup(command="build", dirty=False)
    try:
        build(config)
    finally:
        config.plugins.on_shutdown()


def on_serve(server, **_):
    for name in WATCHED:
        server.watch(os.path.join("docs", name))
    server.watch("snippets")
    return server
