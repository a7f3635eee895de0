"""What snippets print: the .out files, and when they are stale.

`snippets/outputs.json` keeps, for every .out file, the digest of the code that
printed it, so that building the site can tell without torch that nothing changed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from scripts.errors import UserError
from scripts.measure.digest import module_digest
from scripts.measure.records import write_whole
from scripts.site.reading.source import ROOT, SNIPPETS

LOCK = SNIPPETS / "outputs.json"


class OutputError(UserError):
    """A snippet that does not run, or a damaged list of what they print. One line."""


def files() -> list[Path]:
    """All .out files, in the order of their paths."""
    return sorted(SNIPPETS.glob("*/*.out"))


def digest(output: Path) -> str:
    """The digest of the snippet and of the snippets that it imports."""
    source = output.with_suffix(".py").relative_to(ROOT)
    return module_digest(".".join(source.with_suffix("").parts))


def read_list(path: Path) -> dict[str, str]:
    """Names and digests from one JSON file. OutputError when it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        where = path.relative_to(ROOT).as_posix()
        raise OutputError(f"{where}: damaged: {error}; git restores it") from None


def locked() -> dict[str, str]:
    return read_list(LOCK)


def name(output: Path) -> str:
    return output.relative_to(SNIPPETS).as_posix()


def stale() -> list[Path]:
    """The .out files whose code has changed since they were written."""
    known = locked()
    return [out for out in files() if known.get(name(out)) != digest(out)]


def run(output: Path) -> str:
    """What the snippet prints, run as a program of its own from the root."""
    module = ".".join(output.with_suffix("").relative_to(ROOT).parts)
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise OutputError(f"snippets/{name(output)[:-4]}.py does not run: {reason}")
    return done.stdout


def write(output: Path) -> bool:
    """Run the snippet and rewrite its .out; whether anything changed."""
    printed = run(output)
    changed = printed != output.read_text(encoding="utf-8")
    if changed:
        write_whole(output, printed)
    kept = {n: d for n, d in locked().items() if (SNIPPETS / n).is_file()}
    kept[name(output)] = digest(output)
    write_whole(LOCK, json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
    return changed
