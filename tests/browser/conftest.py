"""The built site in a real Chromium.

The site is built once, strictly, and served below a path (/norms/), as a project
site on GitHub Pages is. Without Chromium these tests are skipped, except where
BROWSER_TESTS=required says that a missing browser is a failure.
"""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL = "no Chromium found; install it: apt-get install chromium fonts-wqy-microhei"
PREFIX = "/norms/"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
VIEWPORTS = {
    "desktop": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 844},
}


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site below PREFIX, and its 404.html as GitHub Pages does."""

    def translate_path(self, path):
        if not path.startswith(PREFIX):
            return str(Path(self.directory) / "no-such-file")
        return super().translate_path("/" + path.removeprefix(PREFIX))

    def send_error(self, code, message=None, explain=None):
        if code != 404:
            return super().send_error(code, message, explain)
        body = (Path(self.directory) / "404.html").read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def chromium():
    """The browser's path, or a skip that says how to get one."""
    path = os.environ.get("CHROMIUM") or next(
        filter(None, map(shutil.which, NAMES)), ""
    )
    if not path:
        if os.environ.get("BROWSER_TESTS") == "required":
            pytest.fail(INSTALL)
        pytest.skip(INSTALL)
    return path


@pytest.fixture(scope="session")
def site(chromium, tmp_path_factory):
    """(folder, address) of the built site, served on a free port."""
    folder = tmp_path_factory.mktemp("site")
    handler = functools.partial(_Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    address = f"http://127.0.0.1:{server.server_port}{PREFIX}"
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir"]
    environment = os.environ | {"SITE_URL": address, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [*build, str(folder)], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, address
    server.shutdown()
    server.server_close()


@pytest.fixture
def elsewhere(site):
    """The same files at an address that the build did not know."""
    handler = functools.partial(_Handler, directory=str(site[0]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}{PREFIX}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser(chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """open_page(**context options) -> a page; its context is closed at the end."""
    contexts = []

    def open_one(**options):
        contexts.append(browser.new_context(**options))
        return contexts[-1].new_page()

    yield open_one
    for context in contexts:
        context.close()


@pytest.fixture
def visit(site, open_page):
    """visit(path, **context options) -> the page, loaded and watched."""
    from tests.browser.crawl import Watch  # which imports this module

    watches = []

    def visit(path, **options):
        page = open_page(**options)
        watches.append(Watch(page, site[1]))
        page.goto(site[1] + path)
        page.wait_for_load_state("networkidle")
        return page

    yield visit
    assert not [problem for watch in watches for problem in watch.problems]


def urls(language: str) -> list[str]:
    """Addresses of all pages of a language, below the site's root."""
    pages = ROOT / "docs" / language / "pages"
    found = [path.relative_to(pages).as_posix() for path in pages.rglob("*.md")]
    found += [
        f"labs/{p.stem.replace('_', '-')}" for p in (ROOT / "docs/labs").glob("*.py")
    ]
    stems = (name.removesuffix(".md") for name in sorted(found))
    return [f"{language}/" + f"{s}/".removesuffix("index/") for s in stems]
