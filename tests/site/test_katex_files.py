"""The vendored KaTeX is what its checksums say."""

import hashlib
from pathlib import Path

THEME = Path(__file__).resolve().parents[2] / "docs" / "theme"


def test_checksums():
    lines = (THEME / "katex/SHA256SUMS").read_text(encoding="utf-8").splitlines()
    listed = dict(reversed(line.split(maxsplit=1)) for line in lines)
    folders = (THEME / "katex", THEME / "overrides/assets/katex")
    files = [p for folder in folders for p in folder.rglob("*") if p.is_file()]
    own = {"SHA256SUMS", "README.md"}
    found = {
        p.relative_to(THEME).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in files
        if p.name not in own
    }
    assert found == listed
