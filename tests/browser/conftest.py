"""The built site in a real Chromium.

The site is built once, strictly, and served below a path (/norms/), as a project
site on GitHub Pages is. Without Chromium these tests are skipped, except where
BROWSER_TESTS=required says that a missing browser is a failure.
"""

import fcntl
import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest

from tests.browser.axe_cache import Looks

ROOT = Path(__file__).resolve().parents[2]
# The shell draws as Chromium does, without its windows: a page costs a third.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
INSTALL = (
    "no Chromium found; install it: "
    "apt-get install chromium-headless-shell fonts-wqy-microhei"
)
PREFIX = "/norms/"
HOST = "norms.localhost"  # of localhost, where a page may use the clipboard
ADDRESS = f"http://{HOST}{PREFIX}"
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

# Cases of one test that differ in these alone: `make test` runs one of them.
AXES = ("language", "here", "there", "viewport", "scheme")


@pytest.hookimpl(tryfirst=True)  # before what is marked slow is left out
def pytest_collection_modifyitems(items):
    """Mark as slow all but one of the cases that differ in language or look alone.

    Which one is kept follows from the test's name: each language and each width is
    kept by about as many tests.
    """
    cases: dict[tuple, list] = {}
    for item in items:
        if "tests/browser/" in item.nodeid and hasattr(item, "callspec"):
            given = item.callspec.params
            if set(AXES) & given.keys():
                rest = [repr(each) for each in given.items() if each[0] not in AXES]
                test = item.nodeid.partition("[")[0]
                cases.setdefault((test, *sorted(rest)), []).append(item)
    for (test, *_), alike in cases.items():
        kept = zlib.crc32(test.encode()) % len(alike)
        for item in alike[:kept] + alike[kept + 1 :]:
            item.add_marker(pytest.mark.slow)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site below PREFIX, and its 404.html as GitHub Pages does."""

    protocol_version = "HTTP/1.1"  # a connection serves more than one file

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
def folder(tmp_path_factory):
    """Where the built site lies, for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"


@pytest.fixture(scope="session")
def port(folder):
    """The port where this worker serves the folder."""
    handler = functools.partial(_Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def site(chromium, folder):
    """(folder, address) of the site, built by the first worker that asks for it."""
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir"]
    environment = os.environ | {"SITE_URL": ADDRESS, "NO_MKDOCS_2_WARNING": "1"}
    unfinished = folder.with_name("site-unfinished")
    with folder.with_name("site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            build.append(str(unfinished))
            done = subprocess.run(
                build, cwd=ROOT, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr[-2000:]
            unfinished.rename(folder)
    return folder, ADDRESS


@pytest.fixture
def elsewhere(site, port):
    """The same files at an address that the build did not know."""
    return f"http://127.0.0.1:{port}{PREFIX}"


@pytest.fixture(scope="session")
def browser(chromium, port, folder):
    """A browser for which this worker's server is the host of ADDRESS."""
    from playwright.sync_api import expect, sync_playwright

    from tests.browser import crawl  # which imports this module

    expect.set_options(timeout=30_000)  # as long as other waits, not 5 s
    host = f"--host-resolver-rules=MAP {HOST}:80 127.0.0.1:{port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=[*FLAGS, host]
        )
        crawl.JUDGED = Looks(folder.with_name("looks"))
        yield browser
        browser.close()


# The theme takes a file as a blob, whose text it goes on with before the next task.
TELL_READ = """{
  const { text } = Blob.prototype;
  const { setTimeout } = window; // tests put others in its place
  Blob.prototype.text = async function () {
    const read = await text.call(this);
    if (read.includes("<urlset")) setTimeout(() => (window.sitemapRead = true));
    return read;
  };
}"""


@pytest.fixture(scope="module")
def tab(site, browser):
    """One tab that goes from page to page: what they share is loaded once."""
    context = browser.new_context()
    context.add_init_script(TELL_READ)
    yield context.new_page()
    context.close()


@pytest.fixture
def open_page(browser):
    """open_page(**context options) -> a page; its context is closed at the end."""
    contexts = []

    def open_one(**options):
        contexts.append(browser.new_context(**options))
        contexts[-1].add_init_script(TELL_READ)
        return contexts[-1].new_page()

    yield open_one
    for context in contexts:
        context.close()


def awake(page) -> None:
    """Wait until the theme knows the site's pages, the last thing it asks for.

    From then on it follows a link without a new document.
    """
    page.wait_for_function("() => window.sitemapRead")


def pause(page, milliseconds: int) -> None:
    """Wait until the page has done what it had put off for so long, however slow it is.

    Timers run in the order in which they are due.
    """
    page.evaluate("ms => new Promise(done => setTimeout(done, ms))", milliseconds)


def hold(page, pattern: str):
    """Hold what the page asks for; call what this returns to let it come."""
    held = []
    page.route(pattern, lambda route: held.append(route))

    def release() -> None:
        for _ in range(600):
            if held:
                break
            page.wait_for_timeout(50)
        held[0].continue_()

    return release


HOLD_TIMERS = """() => {
  const held = (window.heldTimers = []);
  window.setTimeout = (run) => -held.push(run);
  window.clearTimeout = (id) => delete held[-id - 1];
}"""
RUN_TIMERS = """() => heldTimers.forEach((run, i) => {
  delete heldTimers[i];
  run();
})"""


def hold_timers(page) -> None:
    """Let what the page does after a pause wait for run_timers, however slow it is."""
    page.evaluate(HOLD_TIMERS)


def run_timers(page) -> None:
    """Let the pause of all held timers be over."""
    page.evaluate(RUN_TIMERS)


@pytest.fixture
def visit(site, open_page):
    """visit(path, **context options) -> the page, loaded and watched."""
    from tests.browser.crawl import Watch  # which imports this module

    watches = []

    def visit(path, **options):
        page = open_page(**options)
        watches.append(Watch(page, site[1]))
        page.goto(site[1] + path)
        if options.get("java_script_enabled", True):
            awake(page)
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
