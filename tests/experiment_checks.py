"""What the tests of every experiment start from: its tiny rows and their record."""

from dataclasses import replace
from string import Formatter

from scripts.measure import figures
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


def with_values(record: Record, value, column: str = "values", **where) -> Record:
    """The record with value(row) in a column of each row that is as ``where`` says."""
    rows = [
        {**row, column: value(row)} if select([row], **where) else row
        for row in record.rows
    ]
    return replace(record, rows=rows)


def plain_step(optimizer, loss, rate: float, clip: float | None = None) -> None:
    """One step of torch's own optimizer, as in a loop that trains one model alone."""
    from torch.nn.utils import clip_grad_norm_

    optimizer.zero_grad()
    loss.backward()
    if clip:
        groups = optimizer.param_groups
        clip_grad_norm_([p for group in groups for p in group["params"]], clip)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()


def check_facts(module, record: Record, expected: dict[str, str]) -> dict[str, str]:
    """The facts of the record, of which some are as expected."""
    facts = module.facts(record)
    assert {name: facts.get(name) for name in expected} == expected
    return facts


def check_facts_and_words(module, record) -> None:
    """Facts are texts; both languages have the same words with the same facts."""
    facts = module.facts(record)
    assert all(isinstance(value, str) and value for value in facts.values())
    zh, en = module.WORDS["zh"], module.WORDS["en"]
    assert zh.keys() == en.keys() >= {"title", "caption", "alt"}
    for key in zh:
        texts = (Formatter().parse(words[key]) for words in (zh, en))
        names = [sorted(name for _, name, _, _ in text if name) for text in texts]
        assert names[0] == names[1]
        assert set(names[0]) <= facts.keys()


def draw(module, record, language: str):
    """The experiment's figure in a language."""
    words = figures.fill(module.WORDS[language], module.facts(record))
    return module.plot(record, {**words, "lang": language})
