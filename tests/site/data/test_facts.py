"""Which record's numbers the pages show."""

from dataclasses import replace

import pytest

from scripts.measure import records
from scripts.site.data import facts
from scripts.site.reading.source import SourceError

NAME = "init_gradients"
GPU = {"kind": "gpu", "name": "A GPU"}


@pytest.fixture
def ours():
    return records.find(NAME)[0]


@pytest.fixture
def filed(monkeypatch, request):
    """Say which records there are."""

    def say(*found):
        monkeypatch.setattr(records, "find", lambda *_: records._sorted(found))
        monkeypatch.setattr(records, "experiments", lambda *_: [NAME])
        monkeypatch.setattr(facts, "_stamps", lambda: (request.node.name, len(found)))

    return say


def on_a_gpu(record, **made):
    rows = [row | {"seed": row["seed"]} for row in record.rows]
    made = record.provenance | {"device": GPU} | made
    return replace(record, machine="a-gpu", provenance=made, rows=rows)


def test_a_partial_record_leads_no_page(ours, filed):
    partial = on_a_gpu(ours, steps=[1, 12])
    filed(partial)
    with pytest.raises(SourceError, match="unknown experiment with a complete record"):
        facts.facts()[NAME]
    assert facts.words(partial, "en")["caption"]  # its own figure speaks of it
    filed(partial, ours)
    assert [r.machine for r in facts.recorded()[NAME]] == [ours.machine, "a-gpu"]
    assert facts.facts()[NAME] is facts._facts(NAME, ours.machine, facts._stamps())
    filed(partial, ours, on_a_gpu(ours))
    assert facts.recorded()[NAME][0].kind == "gpu"
