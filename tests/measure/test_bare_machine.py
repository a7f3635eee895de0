"""What measures and files runs where nothing of the site's is installed."""

import subprocess
import sys

import pytest

from scripts.site.reading.source import ROOT

BARE = "tests/measure/bare_machine.py"


def run(*arguments: str):
    command = [sys.executable, BARE, "scripts/build.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("measure running_maximum_loss --size tiny", "size 'tiny' is never recorded"),
        ("measure norm_bandwidth norm_backward --dry-run", "width 16384"),
        ("accept no_such_file.json", "no such file"),
        ("restamp running_maximum_loss", "no record is stale"),
        ("examine no_such_module:f", "no module 'no_such_module'"),
    ],
)
def test_it_starts(arguments, says, tmp_path):
    verb, *rest = arguments.split()
    journal = ["--journal", str(tmp_path)] if verb == "measure" else []
    done = run(verb, *rest, *journal)
    assert says in done.stdout + done.stderr
    assert "lacks" not in done.stderr and "Traceback" not in done.stderr


def test_what_builds_the_site_says_what_is_missing():
    done = run("site")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("build.py: this Python lacks mkdocs; make VERB installs")
