"""A copy of the project that a test may break."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ["docs", "snippets", "scripts", "mkdocs.yml", "constraints.txt"]


class Project:
    """A copy of what the site is built from."""

    def __init__(self, root: Path):
        self.root = root
        for name in COPIED:
            source, target = ROOT / name, root / name
            if source.is_dir():
                shutil.copytree(
                    source, target, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(source, target)

    def run(self, *arguments: str, seconds: float = 120):
        """Run Python with the arguments, in the copy; returns the finished process."""
        environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
        environment.pop("PYTHONPATH", None)
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    def build(self):
        return self.run("-m", "mkdocs", "build", "--strict")

    def page(self, path="rmsnorm/speed.md", language="en") -> Path:
        return self.root / "docs" / language / "pages" / path

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {path.name}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def append(self, path: Path, text: str) -> None:
        path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path)
