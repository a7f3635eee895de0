"""A mistake that a suite notices is killed, one that it does not is alive."""

import pytest

from scripts.mutants import command, trial
from scripts.mutants.variants import variants

HALF = "def half(x):\n    return x / 2\n"
TESTS = """from snippets.a.half import half


def test_half():
    assert half(4) == 2
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name, text in {
        "snippets/a/half.py": HALF,
        "tests/snippets/a/test_half.py": TESTS,
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(trial, "ROOT", tmp_path)
    return tmp_path


def test_outcomes(project):
    def said(text, seconds=60):
        return trial.outcome(project, "snippets/a/half.py", text, seconds)

    assert said(HALF) == trial.ALIVE
    assert said(HALF.replace("/", "*")) == trial.KILLED
    assert said(HALF.replace("x / 2", "x // 2")) == trial.ALIVE  # 4 halves alike
    assert said("def half(:") == trial.KILLED
    assert said("import os\nos._exit(0)\n") == trial.KILLED
    assert said("while True:\n    pass\n", 1) == trial.LATE
    assert (project / "snippets/a/half.py").read_text() == HALF


def test_what_a_file_prints_is_part_of_its_suite(project):
    file = project / "snippets/a/half.py"
    file.write_text(HALF + "print(half(5))\n")
    file.with_suffix(".out").write_text("2.5\n")
    text = file.read_text()
    assert trial.outcome(project, "snippets/a/half.py", text, 60) == trial.ALIVE
    text = text.replace("x / 2", "x // 2")
    assert trial.outcome(project, "snippets/a/half.py", text, 60) == trial.KILLED


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("snippets/rms_norm/reference.py", "tests/snippets/rms_norm"),
        ("scripts/measure/spread.py", "tests/measure/test_spread.py"),
        ("scripts/site/data/claims.py", "tests/site/data"),
    ],
)
def test_each_file_has_a_suite(path, wanted):
    assert trial.suite(path) == [wanted]


def test_every_file_that_is_tried_has_one():
    for path in command._files(command.FOLDERS):
        assert trial.suite(path)


def test_what_lives_is_there_still_and_every_reason_is_needed():
    """The record speaks of the files as they are, or of nothing."""
    rows = command.read_yaml(command.REASONS)
    for row in rows:
        text = (trial.ROOT / row["file"]).read_text(encoding="utf-8")
        made = {(v.old, v.new) for v in variants(text)}
        assert (row["old"], row["new"]) in made, row
        assert set(row["why"]) == {"zh", "en"}
    assert len({(r["file"], r["old"], r["new"]) for r in rows}) == len(rows)
