"""Runs: resumed where they stopped, never mixed, recorded once finished."""

import json

import pytest

from scripts.measure import provenance, records, runner
from scripts.measure.records import RecordError


@pytest.fixture(autouse=True)
def test_machine(monkeypatch):
    monkeypatch.setenv("MACHINE", "test-cpu")
    monkeypatch.setattr(provenance, "gpu", lambda: None)


@pytest.fixture
def places(tmp_path, folder):
    return dict(root=tmp_path / "records", cache=tmp_path / "cache", folder=folder)


def _journal(places):
    return places["cache"] / "test-cpu" / "squares.small.jsonl"


def _edit(folder, old, new):
    import sys

    path = folder / "squares.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    sys.modules.pop("scripts.experiments.squares", None)


def test_a_finished_run_writes_its_record_and_drops_the_journal(places, capsys):
    outcome = runner.measure(["squares"], "small", **places)
    assert outcome.written == [places["root"] / "test-cpu" / "squares.json"]
    found = records.load(outcome.written[0])
    assert [row["y"] for row in found.rows] == [0.0, 0.5, 2.0]
    assert found.provenance["seeds"] == [0]
    assert found.provenance["method"] == "How large is a square?"
    assert not _journal(places).exists()
    said = capsys.readouterr().err
    assert "squares 1/3 (x 0)" in said
    assert "left" in said
    assert "wrote test-cpu/squares.json" in said


def test_tiny_runs_and_is_not_recorded(places, capsys):
    outcome = runner.measure(["squares"], "tiny", **places)
    assert outcome.written == []
    assert len(outcome.records[0].rows) == 3
    assert not places["root"].exists()
    assert "never recorded" in capsys.readouterr().err
    assert runner.trial("squares", folder=places["folder"]).size == "tiny"


def _interrupted(places, monkeypatch, at):
    """Run until Ctrl-C comes during the step with x = ``at``; the steps run."""
    module = records.load_experiment("squares", places["folder"])
    ran = []
    right = module.square

    def square(x):
        ran.append(x)
        if x == at:
            raise KeyboardInterrupt
        return right(x)

    monkeypatch.setattr(module, "square", square)
    with pytest.raises(SystemExit) as stopped:
        runner.measure(["squares"], "small", **places)
    assert stopped.value.code == 130
    monkeypatch.setattr(module, "square", right)
    return ran


def test_an_interrupted_run_goes_on_and_repeats_no_step(places, monkeypatch, capsys):
    assert _interrupted(places, monkeypatch, at=2) == [0, 1, 2]
    said = capsys.readouterr().err
    assert "2 of 3 steps are kept" in said
    assert "go on with: python scripts/build.py measure squares --size small" in said
    assert not places["root"].exists()

    module = records.load_experiment("squares", places["folder"])
    ran = []
    right = module.square
    monkeypatch.setattr(module, "square", lambda x: ran.append(x) or right(x))
    outcome = runner.measure(["squares"], "small", **places)
    assert ran == [2]
    found = records.load(outcome.written[0])
    assert [row["x"] for row in found.rows] == [0, 1, 2]
    assert "going on, 2 of 3" in capsys.readouterr().err


def test_a_torn_last_line_is_dropped(places, monkeypatch):
    _interrupted(places, monkeypatch, at=2)
    with _journal(places).open("a", encoding="utf-8") as file:
        file.write('{"cell": {"x": 2}, "rows": [{"x": 2, "se')
    outcome = runner.measure(["squares"], "small", **places)
    rows = records.load(outcome.written[0]).rows
    assert [row["y"] for row in rows] == [0.0, 0.5, 2.0]


def test_a_journal_of_other_code_is_set_aside(places, monkeypatch, capsys):
    _interrupted(places, monkeypatch, at=2)
    _edit(places["folder"], "x * x", "x * x * x")
    capsys.readouterr()
    outcome = runner.measure(["squares"], "small", **places)
    rows = records.load(outcome.written[0]).rows
    assert [row["y"] for row in rows] == [0.0, 0.5, 4.0]
    aside = [
        line for line in capsys.readouterr().err.splitlines() if "set aside" in line
    ]
    assert len(aside) == 1
    assert _journal(places).with_suffix(".old.jsonl").exists()


def test_a_comment_does_not_cost_the_journal(places, monkeypatch, capsys):
    _interrupted(places, monkeypatch, at=2)
    _edit(places["folder"], "# a comment", "# changed")
    runner.measure(["squares"], "small", **places)
    assert "going on, 2 of 3" in capsys.readouterr().err


def test_other_versions_cost_the_journal(places, monkeypatch, capsys):
    _interrupted(places, monkeypatch, at=2)
    monkeypatch.setattr(provenance, "versions", lambda _: {"torch": "99"})
    runner.measure(["squares"], "small", **places)
    assert "set aside" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["{}\n", "nonsense\n", '{"rows": []}\n', "[]\n"])
def test_a_damaged_journal_is_set_aside(places, monkeypatch, capsys, damage):
    _interrupted(places, monkeypatch, at=2)
    lines = _journal(places).read_text(encoding="utf-8").splitlines(keepends=True)
    lines[1] = damage
    _journal(places).write_text("".join(lines), encoding="utf-8")
    outcome = runner.measure(["squares"], "small", **places)
    assert len(records.load(outcome.written[0]).rows) == 3
    assert "set aside" in capsys.readouterr().err


def test_the_deadline_stops_after_a_step(places, capsys):
    ticks = iter(range(0, 1000, 10))
    outcome = runner.measure(
        ["squares"], "small", deadline=30, clock=lambda: next(ticks), **places
    )
    assert outcome.unfinished == ["squares"]
    assert outcome.written == []
    assert "time is up, 1 of 3 steps are kept" in capsys.readouterr().err
    outcome = runner.measure(["squares"], "small", **places)
    assert len(outcome.written) == 1


def test_full_without_a_gpu_says_what_was_skipped(places, capsys):
    outcome = runner.measure(["squares"], "full", **places)
    assert outcome.skipped == ["squares"]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "no GPU here, skipped: squares" in said
    assert "measure squares --size small" in said


def test_an_experiment_for_gpus_only_is_skipped_on_a_cpu(places, capsys):
    with (places["folder"] / "squares.py").open("a", encoding="utf-8") as file:
        file.write('DEVICE = "gpu"\n')
    assert runner.measure([], "small", **places).skipped == ["squares"]
    assert "--size" not in capsys.readouterr().err


def test_a_cpu_experiment_is_filed_under_the_cpu_of_a_gpu_machine(places, monkeypatch):
    monkeypatch.delenv("MACHINE")
    card = {"kind": "gpu", "name": "NVIDIA H200"}
    monkeypatch.setattr(provenance, "gpu", lambda: dict(card))
    monkeypatch.setattr(provenance, "cpu", lambda: {"kind": "cpu", "name": "Some CPU"})
    assert runner.measure([], "full", **places).records[0].machine == "nvidia-h200"
    with (places["folder"] / "squares.py").open("a", encoding="utf-8") as file:
        file.write('DEVICE = "cpu"\n')
    import sys

    sys.modules.pop("scripts.experiments.squares", None)
    found = runner.measure([], "full", **places).records[0]
    assert (found.machine, found.kind) == ("some-cpu", "cpu")


def test_bad_requests_are_refused_before_anything_runs(places):
    with pytest.raises(RecordError, match="unknown experiment 'cubes'; known: squares"):
        runner.measure(["squares", "cubes"], "small", **places)
    with pytest.raises(RecordError, match="unknown size 'big'; known: tiny, small"):
        runner.measure(["squares"], "big", **places)
    assert not places["cache"].exists()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"y": square(x) / 2', '"y": float("nan")', "column 'y' holds nan"),
        ('"y": square(x) / 2', '"y": 0 if x < 2 else "0"', "'y' holds a text"),
        ('"y": square(x) / 2', '["y", "z"][x % 2]: 0', "other columns"),
        ('[{"x": x, "seed": 0, "y": square(x) / 2}]', "[]", "gave no rows"),
        ('{"x": x}, lambda', '{"x": 0}, lambda', "two steps"),
        ("range(LIMIT)", "range(0)", "no steps"),
    ],
)
def test_bad_experiments_are_one_line(places, old, new, says):
    _edit(places["folder"], old, new)
    with pytest.raises(RecordError, match=says) as caught:
        runner.measure(["squares"], "small", **places)
    assert "\n" not in str(caught.value)


def test_a_failing_step_keeps_the_ones_before(places):
    _edit(places["folder"], "return x * x", "return x * x // (2 - x)")
    with pytest.raises(ZeroDivisionError):
        runner.measure(["squares"], "small", **places)
    lines = _journal(places).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["cell"]["x"] for line in lines[1:]] == [0, 1]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59.4, "59 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")],
)
def test_durations_for_people(seconds, words):
    assert runner.duration(seconds) == words
