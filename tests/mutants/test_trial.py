"""A mistake that a suite notices is killed, one that it does not is alive."""

import contextlib
import json
from types import SimpleNamespace

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
        ("snippets/rms_norm/reference.py", "tests/snippets/rms_norm/test_reference.py"),
        ("snippets/rms_norm/compare.py", "tests/snippets/rms_norm"),
        ("scripts/measure/spread.py", "tests/measure/test_spread.py"),
        ("scripts/site/data/terms.py", "tests/site/data/test_terms.py"),
    ],
)
def test_each_file_has_a_suite(path, wanted):
    shared = [f"tests/snippets/test_{name}.py" for name in ("modules", "operators")]
    assert trial.suite(path) == [wanted, *shared * path.startswith("snippets/")]


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


@pytest.fixture
def command_here(project, monkeypatch, tmp_path):
    """The command on the small project; ``run`` gives what it prints and records."""
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "SEEN", tmp_path / "seen.jsonl")
    monkeypatch.setattr(command, "RECORD", tmp_path / "mutants.json")
    monkeypatch.setattr(command, "reason", lambda one: None)
    monkeypatch.setattr(trial, "copy", lambda: contextlib.nullcontext(project))
    told = []
    monkeypatch.setattr(
        trial, "outcome", lambda *given: told.append(given) or trial_outcome(*given)
    )

    def run(each=9, write=True):
        told.clear()
        options = SimpleNamespace(
            paths=["snippets"], each=each, minutes=None, write=write
        )
        command.run(options)
        return len(told), json.loads(command.RECORD.read_text())["snippets"]

    return run


trial_outcome = trial.outcome


def test_the_baseline_once_and_the_killed_stay_killed(command_here, project, capsys):
    (project / "snippets/a/twice.py").write_text("def twice(x):\n    return x * 2\n")
    trials, record = command_here()
    made = record["tried"]
    assert trials == made + 2  # the baselines of test_half.py and of the folder
    assert record["killed"] == record["before"] < made
    assert {row["file"] for row in record["alive"]} == {"snippets/a/twice.py"}
    assert command_here()[0] == 0  # nothing changed
    (project / "tests/snippets/a/test_twice.py").write_text(
        TESTS.replace("half", "twice").replace("== 2", "== 8")
    )
    trials, after = command_here()
    assert trials == made - record["killed"] + 1  # those that lived, and the baseline
    assert after["before"] == record["before"] and after["killed"] > record["killed"]
    assert f"{after['killed']} killed ({after['before']} at first)" in (
        capsys.readouterr().out
    )


def test_a_suite_that_fails_is_left_out(command_here, project, capsys):
    (project / "tests/snippets/b").mkdir()
    (project / "snippets/b").mkdir()
    (project / "snippets/b/half.py").write_text(HALF)
    (project / "tests/snippets/b/test_half.py").write_text(
        "def test():\n    assert 0\n"
    )
    assert command_here()[1]["killed"] > 0
    assert "left out: tests/snippets/b/test_half.py fails" in capsys.readouterr().out


def test_a_run_cut_short_is_a_fair_sample(project):
    (project / "snippets/a/twice.py").write_text(HALF.replace("half", "twice"))
    files = ["snippets/a/half.py", "snippets/a/twice.py"]
    order = [path for path, _ in command._sample(project, files, 3)]
    assert len(order) == 6
    assert [set(order[at : at + 2]) for at in (0, 2, 4)] == 3 * [set(files)]


def test_score():
    share, low, high = command.Counts(110, 90, 95, 10).score()
    assert share == 0.95
    assert (round(low, 4), round(high, 4)) == (0.8882, 0.9785)  # Wilson, 95 of 100
    assert command.Counts(110, 90, 95, 10).alive == 5
    assert command.Counts(1, 0, 0, 1).score() == (0.0, 0.0, 1.0)
