"""Accept cleaned code for a record: steps that are run again give its rows.

A record is bound to the digest of the code that measured it (digest.py), so that any
edit of that code ages it. Where the edit changes no number, `restamp` says so: it runs
some steps again, compares their rows, and files the record with the new digest and a
note of what was run.
"""

import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from math import inf, isclose
from pathlib import Path

from scripts.measure import digest, provenance, records
from scripts.measure.records import Record, RecordError, Step

STEPS = 5
# Another processor or number of threads adds up in another order.
CLOSE = {"rel_tol": 1e-3, "abs_tol": 1e-9}


def restamp(
    name: str, count: int = STEPS, root: Path = records.RECORDS
) -> list[tuple[Path, list[Step]]]:
    """Restamp the stale records of an experiment: (file, the steps that were run).

    RecordError, and nothing is filed, where a step gives other rows than a record.
    """
    records.load_experiment(name)  # an unknown one is said before
    stale = [each for each in records.find(name, root) if digest.is_stale(each)]
    if not stale:
        raise RecordError(f"{name}: no record is stale")
    made = [_restamped(record, count) for record in stale]
    return [(records.save(record, root), steps) for record, steps in made]


def _restamped(record: Record, count: int) -> tuple[Record, list[Step]]:
    now = digest.code_digest(record.experiment)
    steps = records.load_experiment(record.experiment).measure(record.size)
    drawn = draw(steps, count, now)
    if not drawn:
        raise RecordError(f"{record.experiment}: all steps measure time; measure again")
    for step in drawn:
        if found := missed(record, step.run()):
            raise RecordError(
                f"{record.machine}/{record.experiment}: the step {step.cell} gives "
                f"{len(found)} rows that the record lacks; measure again"
            )
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    note = (
        f"{date}, commit {provenance.commit()}: digest was "
        f"{record.provenance['digest']}; run again: "
        + "; ".join(str(step.cell) for step in drawn)
    )
    known = record.provenance
    history = [*known.get("restamped", []), note]
    return replace(
        record, provenance=known | {"digest": now, "restamped": history}
    ), drawn


def draw(steps: Sequence[Step], count: int, seed: str) -> list[Step]:
    """Untimed steps: the cheapest of each arm, in an order that the seed sets.

    Steps are of one arm if the first entries of their cells are equal.
    """
    cheapest: dict[object, Step] = {}
    for step in steps:
        arm = repr(next(iter(step.cell.values())))
        if not step.timed and step.cost < getattr(cheapest.get(arm), "cost", inf):
            cheapest[arm] = step

    def place(step: Step) -> str:
        return hashlib.sha256(f"{seed}{step.cell}".encode()).hexdigest()

    return sorted(cheapest.values(), key=place)[:count]


def missed(record: Record, rows: list[dict]) -> list[dict]:
    """Those of a step's rows that the record lacks or has with other values."""

    def alike(row: dict) -> list[list]:
        known = {k: v for k, v in row.items() if not isinstance(v, float | list)}
        return [list(found.values()) for found in record.select(**known)]

    return [
        row
        for row in map(records._rounded, rows)
        if not any(same(list(row.values()), found) for found in alike(row))
    ]


def same(a: object, b: object) -> bool:
    """Whether two values of rows are equal, up to the rounding of sums."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return None not in (a, b) and isclose(a, b, **CLOSE)
    return a == b
