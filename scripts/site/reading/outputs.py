"""What snippets print: the .out files."""

import os
import subprocess
import sys
from pathlib import Path

from scripts.errors import UserError
from scripts.measure.digest import module_digest
from scripts.measure.records import write_whole
from scripts.site.reading.source import ROOT, SNIPPETS

# Errors, but for what torch.compile itself does with an autograd.Function.
FUNCTION = "<class 'torch.autograd.function.Function'> should not be instantiated"
WARNINGS = f"error,ignore:{FUNCTION}:DeprecationWarning"


class OutputError(UserError):
    """A snippet that does not run. One line."""


def files() -> list[Path]:
    """All .out files, in the order of their paths."""
    return sorted(SNIPPETS.glob("*/*.out"))


def digest(output: Path) -> str:
    """The digest of the snippet and of the snippets that it imports."""
    source = output.with_suffix(".py").relative_to(ROOT)
    return module_digest(".".join(source.with_suffix("").parts))


def name(output: Path) -> str:
    return output.relative_to(SNIPPETS).as_posix()


def run(output: Path) -> str:
    """What the snippet prints, run as a program of its own from the root."""
    module = ".".join(output.with_suffix("").relative_to(ROOT).parts)
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONWARNINGS": WARNINGS}
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


def write(output: Path) -> None:
    """Run the snippet and rewrite its .out."""
    write_whole(output, run(output))
