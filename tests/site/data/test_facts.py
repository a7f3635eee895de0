"""Which record's numbers the pages show."""

import json
from dataclasses import replace

import pytest

from scripts.measure import fact_files as files
from scripts.measure import records
from scripts.site.data import citations, facts
from scripts.site.reading.source import SourceError

NAME = "init_gradients"
GPU = {"kind": "gpu", "name": "A GPU"}
HELD = {
    "facts": {"rows": "7"},
    "figure": {"en": {"caption": "7 rows"}},
    "design": {"zh": {"items": []}},
}


@pytest.fixture
def ours():
    return records.find(NAME)[0]


@pytest.fixture
def filed(monkeypatch, request, tmp_path):
    """Say which records there are, each with a file of facts."""

    def say(*found):
        monkeypatch.setattr(records, "find", lambda *_: records._sorted(found))
        monkeypatch.setattr(records, "experiments", lambda *_: [NAME])
        monkeypatch.setattr(facts, "_stamps", lambda: (request.node.name, len(found)))
        monkeypatch.setattr(files, "FOLDER", tmp_path)
        for record in found:
            path = files.path(NAME, record.machine)
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(HELD))

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
    assert facts.facts()[NAME] == {"rows": "7"}
    filed(partial, ours, on_a_gpu(ours))
    assert facts.recorded()[NAME][0].kind == "gpu"


def test_a_name_is_resolved_to_text(ours, filed):
    filed(ours)
    assert facts.text(f"facts.{NAME}.rows") == "7"
    assert facts.words(ours, "en") == {"caption": "7 rows"}
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
        (f"facts.{NAME}.none", f"unknown fact of {NAME} 'none'; known: rows"),
    ],
)
def test_an_unknown_name_says_which_are_known(name, says, ours, filed):
    filed(ours)
    with pytest.raises(SourceError) as caught:
        facts.text(name)
    assert str(caught.value).startswith(says)


def test_names_read_as_attributes_but_for_private_ones():
    names = facts.Names("fact", {"a": 1, "copy": 2, "items": 3})
    assert names.a == names["a"] == 1
    assert (names.copy, names.items) == (2, 3)  # not the methods of a dict
    with pytest.raises(AttributeError):
        _ = names._a
    with pytest.raises(SourceError, match="unknown fact 'b'; known: a"):
        _ = names.b


def test_designs_are_of_experiments_that_declare_one(ours, filed, tmp_path):
    filed(ours)
    assert facts.designed() == [NAME]
    assert facts.design(NAME, "zh", lambda *given: given) == ({"items": []}, "zh")
    with pytest.raises(SourceError, match=f"unknown design 'x'; known: {NAME}"):
        facts.design("x", "zh", str)


@pytest.mark.parametrize(
    ("text", "says"),
    [(None, r"^no .*init_gradients\.json; run: make render"), ("{", "damaged: ")],
)
def test_a_file_that_is_missing_or_damaged_is_one_line(text, says, ours, filed):
    filed(ours)
    path = files.path(NAME, ours.machine)
    path.write_text(text) if text else path.unlink()
    with pytest.raises(SourceError, match=says):
        facts.facts()


def test_a_file_holds_what_is_used_and_filled_words(ours):
    given = records.load_experiment(NAME).facts(ours)
    held = json.loads(files.text(ours, given, ["steps", "seeds", "no such"]))
    assert set(held) == {"facts", "figure", "design"}
    assert set(held["facts"]) == {"steps", "seeds"} & set(given)
    for language in ("zh", "en"):
        assert set(held["figure"][language]) == {"caption", "alt"}
        assert "{" not in held["figure"][language]["alt"]
        assert held["design"][language]["items"][0][1]


def test_every_text_is_looked_at_for_names():
    used = facts.used()
    assert "noise" in used["norm_speed_cpu"]  # a page
    assert set(facts.SCREENS["running_maximum_loss"]) <= used["running_maximum_loss"]
    for name, shown in facts.facts().items():
        assert set(shown) == used.get(name, set()), name


def test_records_are_looked_for_once_a_build(monkeypatch, tmp_path):
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    monkeypatch.setattr(files, "FOLDER", tmp_path / "none")
    facts.read_again()
    assert facts._stamps() == ()
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a.json").write_text("")
    assert facts._stamps() == ()
    facts.read_again()
    assert [path.name for path, _ in facts._stamps()] == ["a.json"]
    facts.read_again()
