"""Runs: resumed where they stopped, never mixed, recorded once finished."""

import json
import shutil

import pytest

from scripts.measure import accept, provenance, records, runner
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


def test_what_has_its_record_can_be_left_out(places, monkeypatch, capsys):
    runner.measure(["squares"], "small", **places)
    assert runner.measure(["squares"], "small", missing=True, **places).written == []
    assert "squares: has its record" in capsys.readouterr().err
    assert runner.measure(["squares"], "small", **places).written


def _older_code(places, path):
    _edit(places["folder"], "x * x", "x * x * 2")


def _partial(places, path):
    found = records.load(path)
    found.provenance["steps"] = [1, 3]
    records.save(found, places["root"])


@pytest.mark.parametrize(
    "spoil", [_older_code, _partial, lambda _, path: path.unlink()]
)
def test_an_old_a_partial_and_no_record_are_measured(places, spoil):
    (path,) = runner.measure(["squares"], "small", **places).written
    spoil(places, path)
    assert runner.measure(["squares"], "small", missing=True, **places).written


def test_tiny_runs_and_is_not_recorded(places, capsys):
    outcome = runner.measure(["squares"], "tiny", **places)
    assert outcome.written == []
    assert len(outcome.records[0].rows) == 3
    assert not places["root"].exists()
    assert "never recorded" in capsys.readouterr().err
    assert runner.trial("squares", folder=places["folder"]).size == "tiny"


def _interrupted(places, monkeypatch, at, by=KeyboardInterrupt, code=130):
    """Run until Ctrl-C comes during the step with x = ``at``; the steps run."""
    module = records.load_experiment("squares", places["folder"])
    ran = []
    right = module.square

    def square(x):
        ran.append(x)
        if x == at:
            raise by
        return right(x)

    monkeypatch.setattr(module, "square", square)
    with pytest.raises(SystemExit) as stopped:
        runner.measure(["squares"], "small", **places)
    assert stopped.value.code == code
    monkeypatch.setattr(module, "square", right)
    return ran


def test_a_step_that_ends_the_process_leaves_what_is_done(places, monkeypatch, capsys):
    """Its device may be lost: a new process goes on, the exit status is its own."""
    assert _interrupted(places, monkeypatch, 2, SystemExit(75), 75) == [0, 1, 2]
    said = capsys.readouterr().err
    assert "2 of 3 steps are kept" in said and "partial record" in said


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


def test_a_run_stopped_after_its_last_step_writes_its_record(places, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runner, "_finish", stopped)
        with pytest.raises(runner.Interrupted):
            runner.measure(["squares"], "small", **places)
    outcome = runner.measure(["squares"], "small", **places)
    assert len(records.load(outcome.written[0]).rows) == 3
    assert not _journal(places).exists()


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


class Clock:
    """Time that passes only where a step lets it: by x -> seconds."""

    def __init__(self, monkeypatch, folder, seconds, *names):
        self.now, self.ran = 0.0, []
        for name in names:
            module = records.load_experiment(name, folder)
            monkeypatch.setattr(module, "square", self._step(name, seconds))

    def _step(self, name, seconds):
        def square(x):
            self.now += seconds(x)
            self.ran.append((name, x))
            return x * x

        return square

    def __call__(self):
        return self.now


def test_what_is_shared_among_processes(places, monkeypatch):
    asked = []

    def share(name, size, folder, steps, todo, processes, fits):
        asked.append((name, size, folder, len(steps), list(todo), processes, fits(0)))
        return ((index, steps[index].run(), 1.0) for index in todo)

    monkeypatch.setattr(runner.workers, "share", share)
    monkeypatch.setattr(provenance, "processes", lambda module: 3)
    outcome = runner.measure(["squares"], "small", **places)
    assert asked == [("squares", "small", places["folder"], 3, [0, 1, 2], 3, True)]
    assert [row["y"] for row in outcome.records[0].rows] == [0.0, 0.5, 2.0]


TURNS = (0, 2, 1)  # of the steps in their order


def _turns(places, more=""):
    _edit(places["folder"], "/ 2}])", f"/ 2}}], turn={TURNS}[x]{more})")
    shutil.copy(places["folder"] / "squares.py", places["folder"] / "cubes.py")


@pytest.mark.parametrize("deadline", [0, 20, 40, 60])
def test_steps_of_an_earlier_turn_come_first_in_every_experiment(
    places, monkeypatch, capsys, deadline
):
    _turns(places)
    names = ["squares", "cubes"]
    clock = Clock(monkeypatch, places["folder"], lambda x: 10, *names)
    outcome = runner.measure(names, "small", deadline=deadline, clock=clock, **places)
    wanted = [(name, x) for x in (0, 2, 1) for name in names][: deadline // 10]
    assert clock.ran == wanted
    left = [name for name in names if [n for n, _ in wanted].count(name) < 3]
    assert outcome.unfinished == left
    again = f"go on with: {runner.COMMAND} {' '.join(left)} --size small --journal"
    assert (again in capsys.readouterr().err) == bool(left)


def test_a_dry_run_says_what_a_run_does(places, monkeypatch):
    """By the cost of the steps; nothing is computed."""
    _turns(places, ", cost=(2, 5, 1)[x]")
    names, where = ["squares", "cubes"], {"folder": places["folder"]}
    monkeypatch.setattr(records.load_experiment("squares", **where), "square", None)
    for deadline in (3, 9, 99):
        said = runner.simulate(names, "small", deadline, **where)
        clock = Clock(monkeypatch, places["folder"], lambda x: (2, 5, 1)[x], *names)
        outcome = dict(root=places["root"], cache=places["cache"] / str(deadline))
        runner.measure(
            names, "small", deadline=deadline, clock=clock, **outcome, **where
        )
        assert clock.ran == [(name, cell["x"]) for _, name, cell in said]
        assert clock.now == said[-1][0]


def test_no_step_is_begun_that_would_end_too_late(places, monkeypatch):
    clock = Clock(monkeypatch, places["folder"], lambda x: 10, "squares")
    runner.measure(["squares"], "small", deadline=29, clock=clock, **places)
    assert clock.now == 20
    runner.measure(["squares"], "small", deadline=9, clock=clock, **places)
    assert clock.now == 20  # the pace is in the journal
    runner.measure(["squares"], "small", deadline=11, clock=clock, **places)
    assert clock.ran == [("squares", x) for x in (0, 1, 2)]


def test_a_cheap_step_is_begun_where_a_dear_one_is_not(places, monkeypatch):
    cost = "cost=(1, 5, 0.5)[x]"
    _edit(places["folder"], "/ 2}])", f"/ 2}}], {cost})")
    clock = Clock(monkeypatch, places["folder"], lambda x: 10, "squares")
    runner.measure(["squares"], "small", deadline=40, clock=clock, **places)
    assert clock.ran == [("squares", 0), ("squares", 2)]


def test_a_journal_goes_on_in_another_folder(places, monkeypatch, tmp_path, capsys):
    clock = Clock(monkeypatch, places["folder"], lambda x: 10, "squares")
    runner.measure(["squares"], "small", deadline=15, clock=clock, **places)
    shutil.move(places["cache"], tmp_path / "elsewhere")
    places["cache"] = tmp_path / "elsewhere"
    outcome = runner.measure(["squares"], "small", clock=clock, **places)
    assert clock.ran == [("squares", x) for x in (0, 1, 2)]
    assert [len(record.rows) for record in outcome.records] == [3]
    assert "going on, 1 of 3" in capsys.readouterr().err


def _handed_on(places, tmp_path, clock):
    """A journal of one step of three, committed beside the experiments."""
    runner.measure(["squares"], "small", deadline=15, clock=clock, **places)
    handed_on = places["folder"] / runner.HANDED_ON / "test-cpu" / "squares.small.jsonl"
    handed_on.parent.mkdir(parents=True)
    shutil.move(_journal(places), handed_on)
    places["cache"] = tmp_path / "elsewhere"
    return handed_on


def test_a_run_begins_with_the_journal_handed_on(places, monkeypatch, tmp_path, capsys):
    clock = Clock(monkeypatch, places["folder"], lambda x: 10, "squares")
    handed_on = _handed_on(places, tmp_path, clock)
    before = handed_on.read_bytes()
    runner.measure(["squares"], "small", deadline=15, clock=clock, **places)
    assert handed_on.read_bytes() == before  # what is committed changes by hand
    outcome = runner.measure(["squares"], "small", clock=clock, **places)
    assert clock.ran == [("squares", x) for x in (0, 1, 2)]
    assert "going on, 1 of 3" in capsys.readouterr().err
    assert [len(record.rows) for record in outcome.records] == [3]
    assert not handed_on.exists()  # it has served


def test_a_journal_of_other_code_handed_on_is_left_alone(
    places, monkeypatch, tmp_path, capsys
):
    clock = Clock(monkeypatch, places["folder"], lambda x: 10, "squares")
    handed_on = _handed_on(places, tmp_path, clock)
    header, *rest = handed_on.read_text(encoding="utf-8").splitlines(keepends=True)
    other = json.dumps(json.loads(header) | {"digest": "0" * 16})
    handed_on.write_text("".join([other + "\n", *rest]), encoding="utf-8")
    runner.measure(["squares"], "small", deadline=15, clock=clock, **places)
    assert clock.ran == [("squares", 0), ("squares", 0)]
    assert "set aside" in capsys.readouterr().err
    assert handed_on.exists()


def test_a_journal_without_seconds_goes_on(places, monkeypatch):
    _interrupted(places, monkeypatch, at=2)
    lines = _journal(places).read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    assert all(entry.pop("seconds") >= 0 for entry in entries[1:])
    text = "".join(json.dumps(entry) + "\n" for entry in entries)
    _journal(places).write_text(text, encoding="utf-8")
    clock = Clock(monkeypatch, places["folder"], lambda x: 10, "squares")
    runner.measure(["squares"], "small", deadline=1, clock=clock, **places)
    assert clock.ran == [("squares", 2)]


def _partial(places):
    return places["cache"] / "test-cpu" / "squares.json"


def test_an_unfinished_run_leaves_a_partial_record(places, monkeypatch, capsys):
    clock = Clock(monkeypatch, places["folder"], lambda x: 10, "squares")
    runner.measure(["squares"], "small", deadline=20, clock=clock, **places)
    assert not places["root"].exists()
    found = records.load(_partial(places))
    assert found.steps == [2, 3]
    assert [row["x"] for row in found.rows] == [0, 1]
    said = capsys.readouterr().err
    assert f"2 of 3 steps are kept; partial record: {_partial(places)}" in said
    filing = dict(root=places["root"], folder=places["folder"])
    assert accept.accept(_partial(places), **filing)
    whole = runner.measure(["squares"], "small", clock=clock, **places).written[0]
    assert records.load(whole).steps is None
    assert _partial(places).read_bytes() == whole.read_bytes()  # it comes back whole


def test_what_lies_in_the_usual_folder_has_served(places, monkeypatch):
    monkeypatch.setattr(runner, "CACHE", places["cache"])
    _interrupted(places, monkeypatch, at=1)
    assert _partial(places).exists()
    assert runner.measure(["squares"], "small", **places).written
    assert not _partial(places).exists()


def test_an_interrupted_run_leaves_a_partial_record(places, monkeypatch):
    _interrupted(places, monkeypatch, at=1)
    assert records.load(_partial(places)).steps == [1, 3]


def test_without_a_step_or_at_size_tiny_there_is_no_partial_record(places, monkeypatch):
    runner.measure(["squares"], "small", deadline=0, **places)
    clock = Clock(monkeypatch, places["folder"], lambda x: 10, "squares")
    runner.measure(["squares"], "tiny", deadline=15, clock=clock, **places)
    assert len(clock.ran) == 1
    assert not _partial(places).exists()


def test_full_without_a_gpu_says_what_was_skipped(places, capsys):
    outcome = runner.measure(["squares"], "full", **places)
    assert outcome.skipped == ["squares"]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "no GPU here, skipped: squares" in said
    assert "on this CPU: python scripts/build.py measure squares\n" in said


def _declare(places, line):
    """A line more in the experiment, which is imported anew."""
    import sys

    with (places["folder"] / "squares.py").open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    sys.modules.pop("scripts.experiments.squares", None)


def test_the_usual_size_is_full_on_a_gpu_else_what_the_experiment_says(
    places, monkeypatch
):
    assert runner.measure([], None, **places).records[0].size == "small"
    _declare(places, 'CPU_SIZE = "medium"')
    assert runner.measure([], None, **places).records[0].size == "medium"
    monkeypatch.setattr(provenance, "gpu", lambda: {"kind": "gpu", "name": "A GPU"})
    assert runner.measure([], None, **places).records[0].size == "full"
    assert runner.measure([], "medium", **places).records[0].size == "medium"


def test_a_larger_record_stays_unless_a_size_is_asked_for(places, capsys):
    runner.measure([], "medium", **places)
    capsys.readouterr()
    for names in ([], ["squares"]):
        assert runner.measure(names, None, **places).records == []
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "squares: keeps its record of size 'medium'; --size small repl" in said
    (path,) = runner.measure([], "small", **places).written
    assert "wrote test-cpu/squares.json in place of one of" in capsys.readouterr().err
    assert records.load(path).size == "small"
    assert runner.measure([], None, **places).written == [path]


def test_a_size_that_an_experiment_has_not(places, capsys):
    _declare(places, 'SIZES = {"tiny": 1, "medium": 2}')
    assert runner.measure([], "small", **places) == runner.Outcome()
    said = capsys.readouterr().err
    assert said.startswith("left out: experiment 'squares' has no size 'small'")
    with pytest.raises(RecordError, match="no size 'small'; it has: tiny, medium"):
        runner.measure(["squares"], "small", **places)


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


def test_the_command_hands_on_deadline_and_journal(monkeypatch, tmp_path):
    from scripts import build

    asked = []

    def measure(*arguments, **options):
        asked.append((arguments, options))
        return runner.Outcome()

    monkeypatch.setattr(runner, "measure", measure)
    command = ["measure", "squares", "--size", "small", "--deadline", "9"]
    assert build.main([*command, "--journal", str(tmp_path)]) == 0
    assert build.main(command) == 0
    usual = {"missing": False, "deadline": 9.0, "cache": runner.CACHE}
    wanted = [{**usual, "cache": tmp_path}, usual]
    assert asked == [((["squares"], "small"), each) for each in wanted]
