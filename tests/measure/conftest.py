"""A record that is right, and a folder with one small experiment."""

import textwrap

import pytest

from scripts.measure.records import Record

PROVENANCE = {
    "device": {"kind": "cpu", "name": "Test CPU", "cores": 2, "threads": 1},
    "os": "Linux x86_64",
    "python": "3.11.2",
    "versions": {"torch": "2.13.0"},
    "commit": "abc1234",
    "date": "2026-11-21T09:04:43Z",
    "method": "counted",
    "seeds": [0, 1],
    "digest": "0123456789abcdef",
}

EXPERIMENT = '''
    """How large is a square?"""
    from scripts.measure.records import Step

    LIMIT = 3
    UNUSED = "not measured"

    def square(x):
        """Docstring."""
        return x * x  # a comment

    def measure(size):
        return [
            Step({"x": x}, lambda x=x: [{"x": x, "seed": 0, "y": square(x) / 2}])
            for x in range(LIMIT)
        ]

    def facts(record):
        return {"most": str(max(row["y"] for row in record.rows))}

    WORDS = {
        lang: {"title": title, "caption": "{most}", "alt": "{most}"}
        for lang, title in (("zh", "平方"), ("en", "Squares"))
    }

    def plot(record, words):
        return None
'''


@pytest.fixture
def record() -> Record:
    rows = [
        {"name": "a", "value": 0.123456789, "times": [1e-6, 2.5]},
        {"name": "b", "value": 2, "times": []},
    ]
    provenance = {**PROVENANCE, "device": dict(PROVENANCE["device"])}
    return Record("squares", "test-cpu", "small", provenance, list(rows[0]), rows)


@pytest.fixture
def folder(tmp_path):
    """An experiments folder with `squares`; edit the file to change its code."""
    folder = tmp_path / "experiments"
    folder.mkdir()
    (folder / "squares.py").write_text(textwrap.dedent(EXPERIMENT), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def forget_experiments():
    """Test experiments must not stay imported under their name."""
    import sys

    yield
    for name in ("squares", "cubes"):
        sys.modules.pop(f"scripts.experiments.{name}", None)
