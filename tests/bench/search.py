"""How long a reader waits for the search: from a key to the first result, in Chromium.

The first words of a visit also fetch the index and build it. Wall-clock time.
"""

import functools
import http.server
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import LANGUAGES, ROOT
from tests.browser.conftest import FLAGS, NAMES

VISITS, KEYS = 7, 25  # a language
WATCH = """() => {
  const list = document.querySelector(".md-search-result__list");
  let key = 0, tell = null;
  window.ask = () => {
    key = 0;
    window.answer = new Promise((resolve) => { tell = resolve; });
  };
  document.addEventListener("input", () => { key = performance.now(); }, true);
  new MutationObserver(() => {
    if (key && list.querySelector(".md-search-result__item")) {
      tell?.(performance.now() - key);
    }
  }).observe(list, { childList: true });
}"""

ANSWERED = (
    "Promise.race([window.answer, new Promise((done) => setTimeout(done, 2000))])"
)


def seconds() -> Iterator[tuple[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir"]
        subprocess.run([*build, folder], cwd=ROOT, check=True)
        yield from of(Path(folder))


def of(folder: Path) -> Iterator[tuple[str, float]]:
    """The times of a built site."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, NAMES)))
    table = read_yaml(ROOT / "tests/browser/queries.yml")
    with _served(folder) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for language in LANGUAGES:
            rows = [str(row["q"]) for row in table[language] if "miss" not in row]
            queries = [query for query in rows if len(query) > 3]
            queries = queries[:: len(queries) // KEYS][:KEYS]
            for query in queries[:VISITS]:
                page = browser.new_context().new_page()
                box = _opened(page, f"{address}/{language}/")
                yield f"{language}: first words of a visit", _typed(page, query)
                if query != queries[VISITS - 1]:
                    page.context.close()
            for query in queries:
                page.evaluate("window.ask()")
                box.fill(query[:-1])
                page.evaluate(ANSWERED)
                yield f"{language}: a key after that", _typed(page, query[-1])
        browser.close()


def _opened(page, address: str):
    """The search box of a page that has just been opened."""
    page.goto(address)
    page.keyboard.press("/")
    box = page.locator("[data-md-component=search-query]")
    box.wait_for(state="visible")
    page.evaluate(WATCH)
    return box


def _typed(page, text: str) -> float:
    """Seconds from the text in the box to the first result."""
    page.evaluate("window.ask()")
    page.keyboard.insert_text(text)
    return page.evaluate("window.answer") / 1000


@contextmanager
def _served(folder: Path):
    handler = functools.partial(_Silent, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass
