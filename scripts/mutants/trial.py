"""Does a file's own suite notice a variant of it? Tried in a copy of the project.

The suite of snippets/<page>/<file>.py is what the file prints, then
tests/snippets/<page>/test_<file>.py where there is one, else the tests of its folder,
and those of all snippets beside the folders; that of scripts/<room>/<file>.py is found
below tests/<room>. Each trial is a fork of one process that has
imported torch, with one thread.
"""

import io
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from scripts.measure.records import write_whole
from scripts.site.reading.source import ROOT

KILLED, ALIVE, LATE = "killed", "alive", "late"  # late: stopped, and counted as killed
PASSED = 77  # exit status of a suite that came to its end; a mistake may exit with 0


class TrialError(RuntimeError):
    """A suite that cannot be used. One line."""


def suite(path: str) -> list[str]:
    """What is run for a file, as pytest takes it."""
    where = Path(path)
    below = where.parts[1:] if where.parts[0] == "scripts" else where.parts
    own = Path("tests", *below[:-1], f"test_{where.name}")
    folder = own.parent
    while not any((ROOT / folder).glob("test_*.py")):
        if folder == Path("tests"):
            raise TrialError(f"{path}: no tests of its own")
        folder = folder.parent
    found = own if (ROOT / own).is_file() else folder
    if where.parts[0] != "snippets" or len(folder.parts) < 3:
        return [found.as_posix()]
    shared = sorted((ROOT / "tests" / "snippets").glob("test_*.py"))
    return [found.as_posix(), *(s.relative_to(ROOT).as_posix() for s in shared)]


@contextmanager
def copy() -> Iterator[Path]:
    """The files under version control, in a folder that is gone afterwards."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        raise TrialError("variants are tried on a clone; this folder is none")
    with tempfile.TemporaryDirectory() as name:
        for file in filter(None, listed.stdout.split("\0")):
            target = Path(name, file)
            target.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / file).is_file():
                shutil.copyfile(ROOT / file, target)
        yield Path(name)


def outcome(
    project: Path, path: str, text: str, seconds: float, tests: list[str] | None = None
) -> str:
    """What the suite says when the file at ``path`` of the copy holds ``text``.

    The suite is what the file prints and its tests, or the ones that are given.
    """
    file = project / path
    before = file.read_text(encoding="utf-8")
    write_whole(file, text)
    try:
        return _forked(project, path, seconds, suite(path) if tests is None else tests)
    finally:
        write_whole(file, before)


def _forked(project: Path, path: str, seconds: float, tests: list[str]) -> str:
    import pytest  # noqa: F401  # once, for all that are forked from here
    import torch

    torch.set_num_threads(1)
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        signal.alarm(int(seconds) + 1)  # its default ends the process
        status = 1
        try:
            status = PASSED if _suite(project, path, tests) == 0 else 1
        finally:  # whatever a mistake raises, it was noticed
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return LATE if os.WTERMSIG(status) == signal.SIGALRM else KILLED
    return ALIVE if os.WEXITSTATUS(status) == PASSED else KILLED


def _suite(project: Path, path: str, tests: list[str]) -> int:
    """Exit code of the suite, in the copy and without a word."""
    os.chdir(project)
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    for name in [n for n in sys.modules if n.split(".")[0] in ("scripts", "snippets")]:
        del sys.modules[name]
    sys.path[:] = [str(project), *(p for p in sys.path if p not in ("", str(ROOT)))]
    sys.dont_write_bytecode = True
    os.environ["PYTHONPATH"] = str(project)
    wanted = (project / path).with_suffix(".out")
    if wanted.is_file():
        printed = io.StringIO()
        with redirect_stdout(printed):
            runpy.run_path(str(project / path), run_name="__main__")
        if printed.getvalue().rstrip("\n") != wanted.read_text("utf-8").rstrip("\n"):
            return 1
    if not tests:
        return 0
    import pytest

    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return int(pytest.main([*quiet, *tests]))
