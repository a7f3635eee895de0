"""Records: written whole, read whole, refused with one clear line."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from scripts.measure import records
from scripts.measure.records import RecordError


def test_same_record_comes_back(record, tmp_path):
    path = records.save(record, tmp_path)
    assert path == tmp_path / "test-cpu" / "squares.json"
    loaded = records.load(path)
    assert loaded.rows[0]["value"] == 0.12346  # five significant digits
    assert loaded.rows[0]["times"] == [1e-6, 2.5]
    assert loaded.rows[1] == record.rows[1]
    assert loaded.provenance == record.provenance
    assert (loaded.kind, loaded.device) == ("cpu", "Test CPU")
    assert loaded.date == "2026-11-21"
    assert loaded.path == path
    assert records.dumps(loaded) == path.read_text(encoding="utf-8")


def test_rows_are_selected_by_what_they_hold(record):
    first, second = record.rows
    assert record.select() == record.rows
    assert record.select(**first) == [first]
    assert record.select(**{**first, "value": second["value"]}) == []
    record.select(name="a").clear()  # the caller's own list
    assert record.select(name="a") == [first]
    with pytest.raises(KeyError):
        record.select(no_such_column=1)


def test_layout_provenance_first_then_one_row_a_line(record):
    text = records.dumps(record)
    lines = text.splitlines()
    assert text.index('"provenance"') < text.index('"columns"') < text.index('"rows"')
    assert lines[-4:-2] == [
        '    ["a", 0.12346, [1e-06, 2.5]],',
        '    ["b", 2, []]',
    ]


@pytest.mark.parametrize(
    ("value", "kept"),
    [(123456.7, 123460.0), (1.0000049, 1.0), (-9.99999e-12, -1e-11), (2**60, 2**60)],
)
def test_five_significant_digits(record, value, kept):
    record.rows[0]["value"] = value
    text = records.dumps(record)
    assert records.loads(text, "x").rows[0]["value"] == kept


def test_write_is_whole_or_not_at_all(record, tmp_path, monkeypatch):
    path = records.save(record, tmp_path)
    before = path.read_bytes()

    def no_space(*_):
        raise OSError("no space left")

    monkeypatch.setattr(records.os, "replace", no_space)
    with pytest.raises(OSError, match="no space"):
        records.save(replace(record, size="full"), tmp_path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["squares.json"]


def test_tiny_is_never_recorded(record, tmp_path):
    with pytest.raises(RecordError, match="'tiny' is never recorded"):
        records.save(replace(record, size="tiny"), tmp_path)
    assert not list(tmp_path.iterdir())


def _damage(name, old, new, says):
    return pytest.param(old, new, says, id=name)


DAMAGE = [
    _damage("truncated", '"rows": [', '"rows": [\n    ["a", 1', "line "),
    _damage("not json", "{", "record {", "line 1: "),
    _damage("nan", "0.12346", "NaN", "holds NaN"),
    _damage("infinite", "0.12346", "-Infinity", "holds -Infinity"),
    _damage("overflowing", "0.12346", "1e999", r"row 1 \(line 18\).*'value' holds inf"),
    _damage("short row", '["b", 2, []]', '["b", 2]', "row 2 .* 2 values for 3 columns"),
    _damage("long row", '["b", 2, []]', '["b", 2, [], 0]', "row 2 .* 4 values for 3"),
    _damage(
        "row no list", '["b", 2, []]', '{"name": "b"}', r"row 2 \(line 19\) is not"
    ),
    _damage("other type", '["b", 2, []]', '["b", "2", []]', "row 2 .*'value'.*number"),
    _damage("object", '["b", 2, []]', '["b", {"x": 1}, []]', "row 2 .* holds a dict"),
    _damage("nan in list", "[1e-06, 2.5]", "[1e-06, null, {}]", "row 1 .* 'times'"),
    _damage("no rows", '"rows"', '"lines"', "no 'rows'"),
    _damage("no provenance", '"provenance"', '"provenence"', "no 'provenance'"),
    _damage("no digest", '"digest": "', '"diegst": "', "lacks 'digest'"),
    _damage("empty digest", "0123456789abcdef", "", "'digest' is empty"),
    _damage("no date", "2026-11-21T09:04:43Z", "yesterday", "'date' is not like"),
    _damage("seeds", "[0, 1]", '"0, 1"', "'seeds' is not a list"),
    _damage("steps", '"seeds"', '"steps": [3, 3], "seeds"', "'steps' is not .done"),
    _damage("kind", '"kind": "cpu"', '"kind": "tpu"', "neither kind 'cpu' nor 'gpu'"),
    _damage("no device name", '"name": "Test CPU"', '"name": ""', "has no name"),
    _damage("twice", '"size": "small"', '"size": "small",\n  "size": "full"', "twice"),
    _damage("size", '"size": "small"', '"size": "huge"', "size 'huge' is none of"),
    _damage("machine", '"machine": "test-cpu"', '"machine": "../x"', "lower-kebab"),
    _damage("machine type", '"machine": "test-cpu"', '"machine": 3', "is not text"),
    _damage("columns", '["name", "value", "times"]', '"name"', "not a list of names"),
    _damage("same column", '["name", "value"', '["name", "name"', "twice|columns"),
    _damage("other name", '"experiment": "squares"', '"experiment": "cubes"', "cubes"),
    _damage("extra", '"size": "small"', '"size": "small",\n  "note": ""', "'note'"),
]


@pytest.mark.parametrize(("old", "new", "says"), DAMAGE)
def test_damage_is_one_line_that_names_the_file(record, tmp_path, old, new, says):
    path = records.save(record, tmp_path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(RecordError, match=says) as caught:
        records.load(path)
    assert "\n" not in str(caught.value)
    assert "squares.json" in str(caught.value)


def test_missing_binary_and_misplaced_files(record, tmp_path):
    with pytest.raises(RecordError, match="no such record"):
        records.load(tmp_path / "squares.json")
    (tmp_path / "squares.json").write_bytes(b"\xff\xfe")
    with pytest.raises(RecordError, match="unreadable"):
        records.load(tmp_path / "squares.json")
    path = records.save(record, tmp_path)
    moved = tmp_path / "other-cpu" / path.name
    moved.parent.mkdir()
    path.rename(moved)
    with pytest.raises(RecordError, match="its folder is 'other-cpu'"):
        records.find("squares", tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"x": 1}, 1j, object()])
def test_dumps_refuses_what_cannot_be_read_back(record, value):
    record.rows[1]["value"] = value
    with pytest.raises(RecordError, match="row 2 column 'value' holds"):
        records.dumps(record)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], (2, "has other columns .*their order")),
        ([{"a": 1}, {"a": 1, "b": 2}], (2, r"has other columns than row 1 \('b'\)")),
        ([{"a": [1, [2, float("nan")]]}], (1, "column 'a' holds nan; write null")),
        ([{"a": [[{"x": 1}]]}], (1, "column 'a' holds a dict")),
        ([{"a": 1}, {"a": True}], (2, "'a' holds a true or false, row 1 a number")),
        ([{"a": None}, {"a": 1}, {"a": "1"}], (3, "holds a text, row 2 a number")),
        ([{"a": 1}, [1]], (2, "is a list, not a dict")),
    ],
)
def test_rows_that_cannot_stand_together(rows, says):
    number, words = records.rows_problem(list(rows[0]), rows)
    assert number == says[0] and re.search(says[1], words)


def test_a_record_is_the_same_wherever_it_lies(record, tmp_path):
    path = records.save(record, tmp_path)
    assert records.load(path) == replace(records.load(path), path=None)
    step = records.Step({}, list)
    assert (step.timed, step.cost) == (False, 1.0)


def test_find_lists_gpu_machines_first_and_the_readers_own_last(record, tmp_path):
    kinds = {"a-cpu": "cpu", "yours": "gpu", "z-gpu": "gpu", "b-cpu": "cpu"}
    for machine, kind in kinds.items():
        device = {**record.provenance["device"], "kind": kind}
        made = {**record.provenance, "device": device}
        records.save(replace(record, machine=machine, provenance=made), tmp_path)
    found = [r.machine for r in records.find("squares", tmp_path)]
    assert found == ["z-gpu", "a-cpu", "b-cpu", "yours"]
    assert records.find("cubes", tmp_path) == []


def test_find_lists_complete_records_before_partial_ones(record, tmp_path):
    kinds = {"a-cpu": ("cpu", [1, 3]), "b-cpu": ("cpu", None), "z-gpu": ("gpu", [2, 3])}
    for machine, (kind, steps) in kinds.items():
        device = {**record.provenance["device"], "kind": kind}
        made = {**record.provenance, "device": device}
        made |= {"steps": steps} if steps else {}
        records.save(replace(record, machine=machine, provenance=made), tmp_path)
    found = [r.machine for r in records.find("squares", tmp_path)]
    assert found == ["b-cpu", "z-gpu", "a-cpu"]


def test_experiments_are_found_and_the_known_ones_named(folder):
    assert records.experiments(folder) == ["squares"]
    assert records.load_experiment("squares", folder).LIMIT == 3
    with pytest.raises(RecordError, match="unknown experiment 'cubes'; known: squares"):
        records.load_experiment("cubes", folder)
    (folder / "cubes.py").write_text("def measure(size): ...\n", encoding="utf-8")
    with pytest.raises(RecordError, match="'cubes' defines no 'facts'"):
        records.load_experiment("cubes", folder)


def test_a_broken_experiment_does_not_stay_imported(folder):
    (folder / "squares.py").write_text("1 / 0\n", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            records.load_experiment("squares", folder)


def test_committed_records_and_names_are_readable():
    for name in records.experiments():
        for found in records.find(name):
            assert records.dumps(found) == found.path.read_text(encoding="utf-8")


def test_the_site_needs_neither_torch_nor_matplotlib():
    code = (
        "import sys\n"
        "sys.modules['torch'] = sys.modules['matplotlib'] = None\n"
        "from scripts.measure import accept, digest, figures, provenance, records\n"
        "from scripts.measure import runner, timing\n"
        "for name in records.experiments():\n"
        "    records.load_experiment(name)\n"
        "    digest.code_digest(name)\n"
        "figures.figure_path('a', 'b', 'zh')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=records.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_text_is_kept_as_it_is(record):
    record.provenance["method"] = "中位数 µs"
    assert "中位数 µs" in records.dumps(record)
    assert json.loads(records.dumps(record))["provenance"]["method"] == "中位数 µs"
