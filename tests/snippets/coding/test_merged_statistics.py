"""merged_statistics against the mean and variance of the data in one piece."""

import pytest
import torch

from snippets.coding.merged_statistics import merged_statistics
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    close,
    has_dtype,
    numbers,
    results,
    unchanged,
)
from tests.wrong import rejects

JUDGED = merged_statistics
SIZES = ((4, 4), (1, 6, 3), (5,), (2, 0, 7, 1), (3, 0), (0, 0, 4, 3))


def _shards(sizes, offset=1.0, dtype=torch.float64):
    data = numbers((sum(sizes), 3), offset=offset) + torch.arange(sum(sizes))[:, None]
    parts = data.to(dtype).double().split(sizes)
    empty = torch.zeros(3, dtype=torch.float64)
    means = [part.mean(0) if len(part) else empty for part in parts]
    spreads = [part.var(0, correction=0) if len(part) else empty for part in parts]
    counts = torch.tensor(sizes)
    return data, (counts, torch.stack(means).to(dtype), torch.stack(spreads).to(dtype))


def _compare(merged, data, given, rtol, case):
    with unchanged(case, *given):
        found = merged(*given)
    mean, variance = results(found, "mean variance", case)
    has_dtype("mean", mean, given[1].dtype, case)
    close("mean", mean, data.mean(0), rtol, case=case)
    has_dtype("variance", variance, given[2].dtype, case)
    close("variance", variance, data.var(0, correction=0), rtol, case=case)


def check_sizes(merged):
    for sizes in SIZES:
        data, given = _shards(sizes)
        _compare(merged, data, given, 1e-9, f"shards of {sizes} rows, float64")


def check_large_mean(merged):
    data, given = _shards((5, 9, 2), offset=1e4, dtype=torch.float32)
    _compare(merged, data, given, 1e-2, "float32 data with mean 1e4")


check_views = on_views(*_shards((5, 9, 2))[1])

CHECKS = [check_sizes, check_large_mean, check_views]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(merged_statistics, CHECKS)
