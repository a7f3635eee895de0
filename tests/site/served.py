"""`make serve` on a copy of the project: a server, and waiting for what it shows."""

import contextlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from tests.site.conftest import Project

PATIENCE = 300  # seconds, far beyond what a build takes on a busy machine


def fetch(url: str) -> str | None:
    """The text at an address, or None where nobody answers yet."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.read().decode()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return None


def wait_for(url: str, text: str) -> float:
    """Seconds until the page at the address holds the text; TimeoutError if never."""
    started = time.perf_counter()
    while (waited := time.perf_counter() - started) < PATIENCE:
        body = fetch(url)
        if body and text in body:
            return waited
        time.sleep(0.05)
    raise TimeoutError(f"{url} did not show {text!r} within {PATIENCE} s")


@contextlib.contextmanager
def serve(project: Project):
    """The address of a server of the project; its log is ``server.log``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (project.root / "server.log").open("w") as log:
        server = subprocess.Popen(
            [
                *(sys.executable, "scripts/build.py", "serve"),
                *("--address", f"127.0.0.1:{port}"),
            ],
            cwd=project.root,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait(60)
