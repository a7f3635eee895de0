"""The four ways to the variance, and the formula that joins two parts."""

import pytest
import torch

from snippets.layer_norm.moments import (
    Moments,
    merge,
    sum_of_squares,
    threads,
    two_passes,
    welford,
)
from tests.snippets.layer_norm.float64 import assert_close, tokens

SHAPES = ((1,), (7,), (3, 1), (5, 7), (2, 3, 31), (2, 1, 3, 64))


def _exact(x):
    x = x.double()
    d = x.shape[-1]
    pairs = x.unsqueeze(-1) - x.unsqueeze(-2)  # no mean in this formula
    return pairs.square().sum((-1, -2)) / (2 * d * d)


def _welford(x):
    moments = welford(x)
    return moments.spread / moments.count


def _threads(x):
    moments = threads(x, width=min(32, x.shape[-1]))
    return moments.spread / moments.count


def check_float64(variance):
    for shape in SHAPES:
        x = tokens(shape, offset=3.0)
        assert_close(variance(x), _exact(x), 1e-10, 1e-12)


def check_large_mean_float64(variance):
    x = tokens((5, 31)) + 1e6
    assert_close(variance(x), _exact(x), 1e-6)


def check_large_mean_float32(variance):
    generator = torch.Generator().manual_seed(0)
    for mean, rtol in ((0, 5e-6), (10, 1e-5), (100, 5e-5), (1000, 2e-4), (3000, 1e-3)):
        x = torch.randn(16, 256, generator=generator, dtype=torch.float64)
        x = (x + mean).float()
        assert_close(variance(x), _exact(x), rtol)


def check_rows_of_different_means(variance):
    x = tokens((4, 31), scale=0.5)
    x = (x + torch.tensor([[0.0], [1000.0], [-2000.0], [3000.0]])).float()
    assert_close(variance(x), _exact(x), 1e-2)


def check_integers_far_out(variance):
    x = torch.tensor([40000.0, 40001.0, 40002.0, 40003.0])
    assert_close(variance(x), torch.tensor(1.25, dtype=torch.float64), 1e-3)


def check_constant_rows(variance):
    for value in (0.0, 1.0, -4.0, 1234.0):
        x = torch.full((3, 256), value)
        assert bool((variance(x) >= 0).all()), "a negative variance"
        assert_close(variance(x), torch.zeros(3, dtype=torch.float64), 0.0, 1e-6)


def check_tail_after_whole_chunks(variance):
    for d in (33, 63, 97):
        x = tokens((2, d), offset=1.0)
        assert_close(variance(x), _exact(x), 1e-10)


def check_input_unchanged(variance):
    x = tokens((3, 7))
    before = x.clone()
    variance(x)
    assert torch.equal(x, before), "the input was modified"


CHECKS = [
    check_float64,
    check_large_mean_float64,
    check_large_mean_float32,
    check_rows_of_different_means,
    check_integers_far_out,
    check_constant_rows,
    check_tail_after_whole_chunks,
    check_input_unchanged,
]


def mean_of_squares_minus_square(x):
    return x.square().mean(-1) - x.mean(-1).square()


def clamped_at_zero(x):
    return mean_of_squares_minus_square(x).clamp_min(0)


def shifted_by_one_row_for_all(x):
    y = x - x.reshape(-1)[0]  # a shift that fits only rows with this mean
    return mean_of_squares_minus_square(y)


def unbiased(x):
    c = x - x.mean(-1, keepdim=True)
    return c.square().sum(-1) / max(x.shape[-1] - 1, 1)


def _chain(x, update):
    mean, spread = torch.zeros_like(x[..., 0]), torch.zeros_like(x[..., 0])
    for count, feature in enumerate(x.unbind(-1), 1):
        mean, spread = update(count, feature, mean, spread)
    return spread / x.shape[-1]


def welford_with_the_old_mean_twice(x):
    def update(count, feature, mean, spread):
        step = feature - mean
        return mean + step / count, spread + step * step

    return _chain(x, update)


def welford_with_the_new_mean_twice(x):
    def update(count, feature, mean, spread):
        mean = mean + (feature - mean) / count
        return mean, spread + (feature - mean).square()

    return _chain(x, update)


def welford_that_counts_from_zero(x):
    def update(count, feature, mean, spread):
        step = feature - mean
        mean = mean + step / max(count - 1, 1)
        return mean, spread + step * (feature - mean)

    return _chain(x, update)


def welford_that_drops_the_last_feature(x):
    return _welford(x[..., :-1]) if x.shape[-1] > 1 else _welford(x)


def _joined(x, join):
    half = (x.shape[-1] + 1) // 2
    if x.shape[-1] == 1:
        return _welford(x)
    count, _, spread = join(welford(x[..., :half]), welford(x[..., half:]))
    return spread / count


def merge_without_the_distance(x):
    def join(a, b):
        return Moments(a.count + b.count, a.mean, a.spread + b.spread)

    return _joined(x, join)


def merge_of_equal_counts(x):
    def join(a, b):
        between = (b.mean - a.mean).square() * a.count / 2
        return Moments(a.count + b.count, a.mean, a.spread + b.spread + between)

    return _joined(x, join)


def merge_that_averages_variances(x):
    def join(a, b):
        spread = (a.spread / a.count + b.spread / b.count) / 2
        return Moments(1, a.mean, spread)

    return _joined(x, join)


def threads_without_the_tail(x):
    whole = x.shape[-1] // 4 * 4
    return _threads(x[..., :whole]) if whole else _welford(x)


def running_sum_in_bfloat16(x):
    total = torch.zeros_like(x[..., 0], dtype=torch.bfloat16)
    for feature in (x - x.mean(-1, keepdim=True)).square().unbind(-1):
        total = total + feature.to(torch.bfloat16)
    return total.to(x.dtype) / x.shape[-1]


VARIANTS = [
    mean_of_squares_minus_square,
    clamped_at_zero,
    sum_of_squares,
    shifted_by_one_row_for_all,
    unbiased,
    welford_with_the_old_mean_twice,
    welford_with_the_new_mean_twice,
    welford_that_counts_from_zero,
    welford_that_drops_the_last_feature,
    merge_without_the_distance,
    merge_of_equal_counts,
    merge_that_averages_variances,
    threads_without_the_tail,
    running_sum_in_bfloat16,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("variance", [two_passes, _welford, _threads])
def test_right(variance, check):
    check(variance)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


def test_the_shortcut_is_right_where_the_mean_is_small():
    x = tokens((5, 31))
    assert_close(sum_of_squares(x), _exact(x), 1e-9)


@pytest.mark.parametrize("split", [1, 3, 16, 30])
def test_merge_is_welford_of_the_whole(split):
    x = tokens((4, 31), offset=5.0)
    whole = welford(x)
    merged = merge(welford(x[..., :split]), welford(x[..., split:]))
    assert merged.count == whole.count == 31
    assert_close(merged.mean, whole.mean, 1e-12)
    assert_close(merged.spread, whole.spread, 1e-12)


@pytest.mark.parametrize("width", [1, 2, 3, 8, 31])
def test_threads_of_any_number(width):
    x = tokens((4, 31), offset=5.0)
    assert threads(x, width).count == 31
    assert_close(threads(x, width).spread, welford(x).spread, 1e-11)


def test_the_shortcut_loses_the_square_of_the_mean():
    """Ten times the mean, about a hundred times the error."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(64, 256, generator=generator, dtype=torch.float64)
    errors = []
    for mean in (10.0, 100.0, 1000.0):
        x = (z + mean).float()
        errors.append(float((sum_of_squares(x) / _exact(x) - 1).abs().median()))
    assert 30 < errors[1] / errors[0] < 300 and 30 < errors[2] / errors[1] < 300


def test_welford_is_not_the_most_exact():
    """In float32, with a large mean, two passes and merged chains beat it."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 256, generator=generator, dtype=torch.float64)
    x = (x + 1000).float()
    errors = [
        float((each(x) / _exact(x) - 1).abs().max())
        for each in (two_passes, _threads, _welford)
    ]
    assert errors[0] < errors[1] < errors[2] < 1e-3
