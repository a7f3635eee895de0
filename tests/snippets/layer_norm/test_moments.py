"""The four ways to the variance, and the formula that joins two parts."""

import pytest
import torch

from snippets.layer_norm.moments import (
    merge,
    sum_of_squares,
    threads,
    two_passes,
    welford,
)
from tests.same_results import on_views
from tests.snippets.layer_norm.float64 import assert_close, tokens
from tests.wrong import suite

SHAPES = ((1,), (7,), (3, 1), (5, 7), (2, 3, 31), (2, 1, 3, 64))


def _exact(x):
    x = x.double()
    d = x.shape[-1]
    pairs = x.unsqueeze(-1) - x.unsqueeze(-2)  # no mean in this formula
    return pairs.square().sum((-1, -2)) / (2 * d * d)


def of_moments(moments):
    """The variance that a function of x gives as Moments."""

    def variance(x):
        found = moments(x)
        return found.spread / found.count

    return variance


def in_threads(threads):
    return of_moments(lambda x: threads(x, width=min(32, x.shape[-1])))


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
    on_views(tokens((2, 3, 7))),
]


test_right, test_known_wrong = suite(two_passes, CHECKS, functions=[sum_of_squares])
test_welford, test_welford_known_wrong = suite(welford, CHECKS, of_moments)
test_threads, test_threads_known_wrong = suite(threads, CHECKS, in_threads)


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
        for each in (two_passes, in_threads(threads), of_moments(welford))
    ]
    assert errors[0] < errors[1] < errors[2] < 1e-3
