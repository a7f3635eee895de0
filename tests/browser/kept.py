"""What was found clean is not looked at again while nothing that it rests on changes.

A look rests on the code that judges and on the browser; a page also on its HTML, on
all that it asks for and on each script, style and font of the site. Only clean
verdicts are kept, in .cache/browser/; CI looks at everything.
"""

import functools
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

from axe_playwright_python.base import AXE_SCRIPT

HERE = Path(__file__).parent
CODE = ("crawl.py", "length.py", "kept.py", "conftest.py", "looks.js")
KEPT = HERE.parents[1] / ".cache" / "browser"
# They may be asked for by any page, also by a worker, whose requests nobody reports.
ASSETS = (".js", ".mjs", ".css", ".woff2", ".wasm")
# Names all pages and decides nothing on one; the theme asks for it everywhere.
LIST = "sitemap.xml"


def wanted() -> bool:
    """Whether earlier verdicts count: everywhere but in CI."""
    required = os.environ.get("BROWSER_TESTS") == "required"
    return not (required or os.environ.get("CI"))


def digest(*parts: bytes) -> str:
    """One digest of all parts and of where each ends."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()


def of_the_judge(version: str) -> str:
    """The digest of the crawl's code, axe, the browser's version and its fonts."""
    code = [(HERE / name).read_bytes() for name in CODE]
    fonts = b""
    if shutil.which("fc-list"):
        listed = subprocess.run(["fc-list"], capture_output=True, check=False).stdout
        fonts = b"\n".join(sorted(listed.splitlines()))
    return digest(*code, AXE_SCRIPT.encode(), version.encode(), fonts)


class Looks:
    """The looks that axe judged and did not fail: a line of a file each.

    Workers append to one file, and each reads what the others wrote.
    """

    def __init__(self, file: Path):
        self._file, self._read, self._known = file, 0, set()

    def unknown(self, looks: list[str]) -> list[str]:
        if self._file.exists():
            with self._file.open("rb") as file:
                file.seek(self._read)
                lines = file.read().split(b"\n")
            whole = lines[:-1]  # behind them, what another worker is just writing
            self._read += sum(len(line) + 1 for line in whole)
            self._known.update(line.decode() for line in whole)
        return [look for look in looks if digest(look.encode()) not in self._known]

    def add(self, looks: list[str]) -> None:
        lines = [digest(look.encode()) + "\n" for look in looks]
        with self._file.open("ab", buffering=0) as file:
            file.write("".join(lines).encode())


class Pages:
    """Clean verdicts on pages: what each rests on, and the lines it gave."""

    def __init__(self, folder: Path, site: Path, address: str):
        folder.mkdir(exist_ok=True)
        self._folder, self._site, self._address = folder, site, address

    @functools.cached_property
    def _assets(self) -> str:
        """The digest of all scripts, styles and fonts of the site."""
        found = sorted(p for p in self._site.rglob("*") if p.suffix in ASSETS)
        names = "\n".join(p.relative_to(self._site).as_posix() for p in found)
        return digest(names.encode(), *(p.read_bytes() for p in found))

    def _file(self, path: str) -> Path:
        return self._folder / (digest(path.encode()) + ".json")

    def _rests_on(self, urls) -> dict[str, str]:
        """The digest of each file of the site behind the addresses."""
        found = {"assets": self._assets}
        for url in urls:
            name = unquote(urlsplit(url).path)
            name = name.removeprefix(urlsplit(self._address).path)
            file = self._site / name
            file = file / "index.html" if file.is_dir() else file
            if file.name != LIST:
                found[url] = digest(file.read_bytes()) if file.is_file() else ""
        return found

    def lines(self, path: str) -> list[tuple[str, str]] | None:
        """The (kind, line) pairs of a clean verdict that still holds, or None."""
        try:
            kept = json.loads(self._file(path).read_text("utf-8"))
            rests_on = kept["rests on"]
            urls = [url for url in rests_on if url != "assets"]
            same = self._rests_on(urls) == rests_on
            return [tuple(line) for line in kept["lines"]] if same else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, path: str, urls, lines: list[tuple[str, str]]) -> None:
        urls = {*urls, self._address + path}
        verdict = {"rests on": self._rests_on(urls), "lines": lines}
        unfinished = self._file(path).with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(verdict), "utf-8")
        unfinished.rename(self._file(path))
