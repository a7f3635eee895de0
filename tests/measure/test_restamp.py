"""Cleaned code is accepted where its steps give the record's rows, and only there."""

from dataclasses import replace

import pytest

from scripts.measure import digest, records
from scripts.measure import restamp as module
from scripts.measure.records import RecordError, Step
from scripts.measure.restamp import draw, missed, restamp

NAME = "running_maximum_loss"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder with one stale record, whose steps take no time."""
    (record, *_) = records.find(NAME)
    rows = record.select(arm="no_layers")
    provenance = record.provenance | {"digest": "0" * 16}
    provenance.pop("restamped", None)
    records.save(replace(record, rows=rows, provenance=provenance), tmp_path)

    def steps(size):
        widths = sorted({row["d"] for row in rows})
        return [Step({"d": d}, lambda d=d: given(d)) for d in widths]

    def given(d):
        return [dict(row) for row in rows if row["d"] == d]

    experiment = records.load_experiment(NAME)
    monkeypatch.setattr(experiment, "measure", steps)
    return tmp_path


def test_the_same_rows_restamp_a_record(root):
    ((path, steps),) = restamp(NAME, root=root)
    record = records.load(path)
    assert not digest.is_stale(record) and len(steps) == 2
    (note,) = record.provenance["restamped"]
    assert "0" * 16 in note and "{'d': 16}" in note
    with pytest.raises(RecordError, match="no record is stale"):
        restamp(NAME, root=root)


def test_other_rows_file_nothing(root, monkeypatch):
    path = root / records.find(NAME)[0].machine / f"{NAME}.json"
    before = path.read_bytes()
    experiment = records.load_experiment(NAME)
    steps = experiment.measure("small")
    off = [
        replace(step, run=lambda step=step: [worse(row) for row in step.run()])
        for step in steps
    ]

    def worse(row):
        return row | {"values": [1.01 * value for value in row["values"]]}

    monkeypatch.setattr(experiment, "measure", lambda size: off)
    with pytest.raises(RecordError, match="rows that the record lacks"):
        restamp(NAME, root=root)
    assert path.read_bytes() == before


def test_times_are_measured_again(root, monkeypatch):
    steps = [Step({"a": 1}, list, timed=True)]
    monkeypatch.setattr(records.load_experiment(NAME), "measure", lambda size: steps)
    with pytest.raises(RecordError, match="all steps measure time"):
        restamp(NAME, root=root)


def test_the_cheapest_step_of_each_arm_is_drawn():
    steps = [
        Step({"arm": arm, "layers": layers}, list, cost=layers)
        for arm in "pqrs"
        for layers in (12, 2, 6)
    ]
    drawn = [draw(steps, 3, seed) for seed in "abc"]
    assert all(step.cost == 2 for each in drawn for step in each)
    arms = [tuple(step.cell["arm"] for step in each) for each in drawn]
    assert len(set(arms)) > 1 and all(len(set(each)) == 3 for each in arms)


def test_rounding_is_forgiven_and_no_more():
    (record, *_) = records.find(NAME)
    row = dict(record.rows[0])
    for factor, lacks in ((1 + 1e-5, 0), (1 + 1e-2, 1)):
        changed = row | {"values": [factor * value for value in row["values"]]}
        assert len(missed(record, [changed])) == lacks
    assert module.same(1, 1) and not module.same(1.0, None)
