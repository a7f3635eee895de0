"""What is vendored is what its checksums say."""

import hashlib
from pathlib import Path

import pytest

THEME = Path(__file__).resolve().parents[3] / "docs" / "theme"
FOLDERS = {
    "katex": ["katex", "overrides/assets/katex"],
    "iframe-worker": ["iframe-worker"],
}


@pytest.mark.parametrize("name", FOLDERS)
def test_checksums(name):
    lines = (THEME / name / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    listed = dict(reversed(line.split(maxsplit=1)) for line in lines)
    files = [p for of in FOLDERS[name] for p in (THEME / of).rglob("*") if p.is_file()]
    own = {"SHA256SUMS", "README.md"}
    found = {
        p.relative_to(THEME).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in files
        if p.name not in own
    }
    assert found == listed
