"""Steps shared among processes: the same record, and no process left behind."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from random import Random

import pytest

from scripts.measure import provenance, records, runner
from scripts.measure.records import EXPERIMENTS, ROOT, RecordError
from tests.lanes import first_quick

EXPERIMENT = '''
    """How large is a square?"""
    import os
    import time
    from functools import partial

    from scripts.measure.records import Step

    PARALLEL = True
    SEEDS = (0,)

    def square(x, pause):
        time.sleep(pause)
        print("a step may print")
        if x == BAD:
            raise ZeroDivisionError("that was the bad one")
        threads = int(os.environ["OMP_NUM_THREADS"])
        return [{"x": x, "y": x * x / 3, "one": threads}]

    BAD = -1

    def measure(size):
        steps = [
            Step({"x": x}, partial(square, x, 0.1), cost=1 + x % 3) for x in range(7)
        ]
        return [Step({"x": 9}, partial(square, 9, 0.01), timed=True), *steps]

    def facts(record):
        return {"most": "1"}

    WORDS = {
        lang: {"title": title, "caption": "{most}", "alt": "{most}"}
        for lang, title in (("zh", "平方"), ("en", "Squares"))
    }

    def plot(record, words):
        return None
'''
AGAIN = """
import json, sys, time
from pathlib import Path
from scripts.measure import runner
name, *paths = sys.argv[1:4]
cache, folder = map(Path, paths)
if "unending" in sys.argv:
    runner._finish = lambda *_: (cache / "ended").touch() or time.sleep(3600)
(record,) = runner.measure([name], "tiny", cache=cache, folder=folder).records
print(json.dumps(record.rows))
"""


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setenv("MACHINE", "test-cpu")
    monkeypatch.setattr(provenance, "gpu", lambda: None)
    found = {"kind": "cpu", "name": "Test CPU", "cores": 2}
    monkeypatch.setattr(provenance, "cpu", lambda: dict(found))


@pytest.fixture
def folder(folder):
    (folder / "squares.py").write_text(textwrap.dedent(EXPERIMENT), encoding="utf-8")
    return folder


@pytest.fixture
def places(tmp_path, folder):
    return dict(root=tmp_path / "records", cache=tmp_path / "cache", folder=folder)


def test_rows_stand_in_the_order_of_the_steps(places, capsys):
    found = runner.measure(["squares"], "small", **places)
    rows = records.load(found.written[0]).rows
    assert [row["x"] for row in rows] == [9, *range(7)]
    assert {row["one"] for row in rows} == {1}
    device = found.records[0].provenance["device"]
    assert (device["threads"], device["processes"]) == (1, 2)
    said = [line for line in capsys.readouterr().err.splitlines() if "/8" in line]
    assert len(said) == 8
    assert "squares 8/8 (x 9)" in said[-1]  # the timed step ran last
    assert all("left" in line for line in said[:-1])


def test_the_rows_are_those_of_one_process(places, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    shared = runner.measure(["squares"], "tiny", **places).records[0]
    assert shared.rows == runner.trial("squares", folder=places["folder"]).rows


def test_a_step_that_fails_is_one_line_and_keeps_the_others(places, capfd):
    path = places["folder"] / "squares.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("BAD = -1", "BAD = 6"), encoding="utf-8")
    with pytest.raises(RecordError, match="'squares': a step failed, see above"):
        runner.measure(["squares"], "small", **places)
    assert "that was the bad one" in capfd.readouterr().err
    journal = places["cache"] / "test-cpu" / "squares.small.jsonl"
    assert len(journal.read_text(encoding="utf-8").splitlines()) >= 3


def test_the_deadline_begins_no_further_step(places, capsys):
    outcome = runner.measure(["squares"], "small", deadline=0.05, **places)
    assert outcome.unfinished == ["squares"]
    assert "time is up" in capsys.readouterr().err
    assert len(runner.measure(["squares"], "small", **places).written) == 1


def alive(name: str, folder) -> list[str]:
    """Commands of the processes that run tiny steps of this experiment."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True)
    wanted = f"{name} tiny {folder}"
    return [line for line in listed.stdout.splitlines() if line.endswith(wanted)]


@pytest.mark.parametrize("name", first_quick("squares", "residual_mean"))
def test_killed_three_times_it_gives_the_same_record(name, places, tmp_path):
    """SIGKILL at random moments; what was undisturbed has the same rows."""
    cache = tmp_path / "killed"
    folder = places["folder"] if name == "squares" else EXPERIMENTS
    command = [sys.executable, "-c", AGAIN, name, str(cache), str(folder)]
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    random = Random(4)
    for _ in range(3):
        run = subprocess.Popen([*command, "unending"], cwd=ROOT, env=settings)
        journal = cache / "test-cpu" / f"{name}.tiny.jsonl"
        before = journal.stat().st_size if journal.exists() else 0
        end = time.monotonic() + 120
        while time.monotonic() < end and run.poll() is None:
            if journal.exists() and journal.stat().st_size > before:
                break  # at least one step further than the last time
            if (cache / "ended").exists():
                break  # or, after a pause of this test, at the last one
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.1))
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
    end = time.monotonic() + 60
    while alive(name, folder) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(name, folder)  # the workers of a killed run end themselves
    last = subprocess.run(
        command, cwd=ROOT, env=settings, capture_output=True, text=True, check=True
    )
    assert "going on" in last.stderr
    other = {**places, "folder": folder}
    undisturbed = runner.measure([name], "tiny", **other).records[0]
    assert last.stdout == f"{json.dumps(undisturbed.rows)}\n"
