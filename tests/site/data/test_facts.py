"""Which record's numbers the pages show."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from scripts.measure import records
from scripts.site.data import citations, facts
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


@pytest.fixture
def small(ours, filed, monkeypatch):
    """One record, of an experiment that says how many rows there are."""
    module = SimpleNamespace(
        facts=lambda record: {"rows": len(record.rows), "deep": facts.Names("x", {})},
        WORDS={"en": {"caption": "{rows} rows"}},
        DESIGN=object(),
    )
    monkeypatch.setattr(records, "load_experiment", lambda name: module)
    filed(ours)
    return module


def test_a_name_is_resolved_to_text(small, ours):
    assert facts.text(f"facts.{NAME}.rows") == str(len(ours.rows))
    assert facts.words(ours, "en") == {"caption": f"{len(ours.rows)} rows"}
    found = citations.references()["zhang2019rms"]
    link = f"([{found.authors}, {found.year}]({found.url}))"
    assert facts.text("cite.zhang2019rms") == link


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("facts", "unknown name [[ facts ]]"),
        ("cite", "unknown name [[ cite ]]"),
        ("else.x", "unknown name [[ else.x ]]"),
        ("cite.nobody", "unknown citation 'nobody'; known: "),
        (
            "facts.nothing",
            "unknown experiment with a complete record 'nothing'",
        ),
        (f"facts.{NAME}.none", f"unknown fact of {NAME} 'none'; known: deep, rows"),
        (f"facts.{NAME}.deep.x", "unknown x 'x'; known: none"),
    ],
)
def test_an_unknown_name_says_which_are_known(name, says, small):
    with pytest.raises(SourceError) as caught:
        facts.text(name)
    assert str(caught.value).startswith(says)


def test_names_read_as_attributes_but_for_private_ones():
    names = facts.Names("fact", {"a": 1})
    assert names.a == names["a"] == 1
    with pytest.raises(AttributeError):
        _ = names._a
    with pytest.raises(SourceError, match="unknown fact 'b'; known: a"):
        _ = names.b


def test_designs_are_of_experiments_that_declare_one(small, ours):
    def form(record, language, found):
        return record.machine, language, found["rows"]

    assert facts.designed() == [NAME]
    assert facts.design(NAME, "zh", form) == (ours.machine, "zh", len(ours.rows))
    with pytest.raises(SourceError, match=f"unknown design 'x'; known: {NAME}"):
        facts.design("x", "zh", form)


def test_without_a_design_there_is_none(small):
    del small.DESIGN
    assert facts.designed() == []
    with pytest.raises(SourceError, match="unknown design 'x'; known: none"):
        facts.design("x", "zh", str)


def test_records_are_looked_for_once_a_build(monkeypatch, tmp_path):
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    facts.read_again()
    assert facts._stamps() == ()
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a.json").write_text("")
    assert facts._stamps() == ()
    facts.read_again()
    assert [path.name for path, _ in facts._stamps()] == ["a.json"]
    facts.read_again()
