"""merged_statistics against the mean and variance of the data in one piece."""

import pytest
import torch

from snippets.coding.merged_statistics import merged_statistics
from tests.snippets.coding.cases import (
    close,
    has_dtype,
    numbers,
    results,
    unchanged,
)

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


CHECKS = [check_sizes, check_large_mean]


def _share(counts, means):
    return (counts.to(means.dtype) / counts.sum())[:, None]


def shards_count_alike(counts, means, variances):
    return merged_statistics(torch.ones_like(counts), means, variances)


def means_do_not_spread(counts, means, variances):
    share = _share(counts, means)
    return (share * means).sum(0), (share * variances).sum(0)


def two_moments(counts, means, variances):
    share = _share(counts, means)
    mean = (share * means).sum(0)
    return mean, (share * (variances + means.square())).sum(0) - mean.square()


def unbiased_variance(counts, means, variances):
    mean, variance = merged_statistics(counts, means, variances)
    n = counts.sum()
    return mean, variance * n / (n - 1)


def spread_of_the_means_unweighted(counts, means, variances):
    share = _share(counts, means)
    mean = (share * means).sum(0)
    between = means.var(0, correction=0)
    return mean, (share * variances).sum(0) + between


def standard_deviations_averaged(counts, means, variances):
    mean, _ = merged_statistics(counts, means, variances)
    return mean, (_share(counts, means) * variances.sqrt()).sum(0).square()


def pairs_without_new_counts(counts, means, variances):
    mean, variance = means[0], variances[0]
    for n, m, v in zip(counts[1:], means[1:], variances[1:], strict=True):
        a, b = counts[0] / (counts[0] + n), n / (counts[0] + n)
        step = m - mean
        variance = a * variance + b * v + a * b * step.square()
        mean = mean + b * step
    return mean, variance


def pairs_that_start_empty(counts, means, variances):
    n, mean, variance = counts[0], means[0], variances[0]
    for k, m, v in zip(counts[1:], means[1:], variances[1:], strict=True):
        a, b = n / (n + k), k / (n + k)
        variance = a * variance + b * v + a * b * (m - mean).square()
        n, mean = n + k, mean + b * (m - mean)
    return mean, variance


def always_float32(counts, means, variances):
    mean, variance = merged_statistics(counts, means.float(), variances.float())
    return mean.to(means.dtype), variance.to(means.dtype)


VARIANTS = [
    shards_count_alike,
    means_do_not_spread,
    two_moments,
    unbiased_variance,
    spread_of_the_means_unweighted,
    standard_deviations_averaged,
    pairs_without_new_counts,
    pairs_that_start_empty,
    always_float32,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
