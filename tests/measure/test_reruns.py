"""A record's rows come out again: one step of each record that costs seconds."""

import pytest

from scripts.measure import records
from scripts.measure.restamp import missed

# Deterministic, a few seconds of one core each; drawn or trained from seeds.
CHEAP = ("init_gradients", "recipe_growth", "residual_growth", "token_similarity")


def chosen(record: records.Record, steps: list[records.Step]) -> records.Step:
    """One of the cheapest; another one once the measured code has changed."""
    least = min(step.cost for step in steps)
    cheap = [step for step in steps if step.cost <= 2 * least]
    return cheap[int(record.provenance["digest"], 16) % len(cheap)]


@pytest.mark.parametrize("name", CHEAP)
def test_a_step_gives_the_rows_of_the_record(name):
    (record, *_) = records.find(name)
    steps = records.load_experiment(name).measure(record.size)
    step = chosen(record, steps)
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
