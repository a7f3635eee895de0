"""What the tests of every experiment start from: its tiny rows and their record."""

import re
from dataclasses import replace

from scripts.measure import look
from scripts.measure.records import Record


def tiny_rows(module) -> list[dict]:
    """All rows of an experiment at size tiny."""
    return [row for step in module.measure("tiny") for row in step.run()]


def tiny_record(name: str, rows: list[dict], seeds, **provenance) -> Record:
    """The rows as a record; ``provenance`` is added to, or replaces, the usual."""
    usual = {
        "device": {"name": "A CPU", "kind": "cpu", "threads": 1},
        "versions": {"torch": "2.13.0"},
        "date": "2026-11-21T09:04:43Z",
        "seeds": list(seeds),
    }
    return Record(name, "a-cpu", "tiny", usual | provenance, list(rows[0]), rows)


def select(rows, **wanted) -> list[dict]:
    """The rows that hold the wanted values."""
    return [r for r in rows if all(r[k] == v for k, v in wanted.items())]


def timed_by_bytes(record: Record, factors: dict[str, float]) -> Record:
    """A record of kernels with a second for each byte, times a provider's factor."""

    def seconds(row):
        if not row["device_seconds"]:
            return None
        return [factors.get(row["provider"], 1.0) * row["bytes"]] * 5

    rows = [{**row, "device_seconds": seconds(row)} for row in record.rows]
    return replace(record, rows=rows)


def check_facts_and_words(module, record) -> None:
    """Facts are texts; both languages have the same words with the same facts."""
    facts = module.facts(record)
    assert all(isinstance(value, str) and value for value in facts.values())
    zh, en = module.WORDS["zh"], module.WORDS["en"]
    assert zh.keys() == en.keys() >= {"title", "caption", "alt"}
    for key in zh:
        names = [sorted(re.findall(r"{(\w+)}", words[key])) for words in (zh, en)]
        assert names[0] == names[1]
        assert set(names[0]) <= facts.keys()


def draw(module, record, language: str):
    """The experiment's figure in a language."""
    words = look.fill(module.WORDS[language], module.facts(record))
    return module.plot(record, {**words, "lang": language})
