"""A record's rows come out again: one step of each record that costs seconds."""

from math import isclose

import pytest

from scripts.measure import records

# Deterministic, a few seconds of one core each; drawn or trained from seeds.
CHEAP = ("init_gradients", "recipe_growth", "residual_growth", "token_similarity")
# Another CPU or number of threads adds up in another order.
CLOSE = {"rel_tol": 1e-3, "abs_tol": 1e-9}


def chosen(record: records.Record, steps: list[records.Step]) -> records.Step:
    """One of the cheapest; another one once the measured code has changed."""
    least = min(step.cost for step in steps)
    cheap = [step for step in steps if step.cost <= 2 * least]
    return cheap[int(record.provenance["digest"], 16) % len(cheap)]


def same(a: object, b: object) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return None not in (a, b) and isclose(a, b, **CLOSE)
    return a == b


def missed(record: records.Record, rows: list[dict]) -> list[dict]:
    """Those of a step's rows that the record lacks or has with other values."""

    def near(row):
        known = {k: v for k, v in row.items() if not isinstance(v, float | list)}
        return [list(found.values()) for found in record.select(**known)]

    return [
        row
        for row in map(records._rounded, rows)
        if not any(same(list(row.values()), found) for found in near(row))
    ]


@pytest.mark.parametrize("name", CHEAP)
def test_a_step_gives_the_rows_of_the_record(name):
    (record, *_) = records.find(name)
    step = chosen(record, records.load_experiment(name).measure(record.size))
    rows = step.run()
    assert missed(record, rows) == []
    # What was measured is not what a forger would have written.
    numbers = {i: k for i, row in enumerate(rows) for k, v in row.items() if float_(v)}
    index, column = next(iter(numbers.items()))
    value = rows[index][column]
    other = [1.01 * v for v in value] if isinstance(value, list) else 1.01 * value
    assert missed(record, [rows[index] | {column: other}])


def float_(value: object) -> bool:
    value = value[0] if isinstance(value, list) and value else value
    return isinstance(value, float) and abs(value) > 1e-6
