"""Operations per byte: counted per element by hand and on a traced formula."""

import pytest

from snippets.speed import intensity
from tests.wrong import suite


class Counted:
    """A number that counts the operations done on it."""

    operations = 0

    def _done(self, *_):
        Counted.operations += 1
        return Counted()

    __add__ = __sub__ = __mul__ = __radd__ = _done


def _operations(formula, elements=64):
    """Operations per element of a formula, those per row rounded away."""
    Counted.operations = 0
    formula([Counted() for _ in range(elements)])
    return round(Counted.operations / elements)


def layer_norm(row):
    total = row[0]
    for x in row[1:]:
        total = total + x
    mean = total
    centred = [x - mean for x in row]
    squares = [c * c for c in centred]
    variance = squares[0]
    for square in squares[1:]:
        variance = variance + square
    return [c * variance * Counted() + Counted() for c in centred]


def rms_norm(row):
    squares = [x * x for x in row]
    total = squares[0]
    for square in squares[1:]:
        total = total + square
    return [x * total * Counted() for x in row]


def test_operations_per_element():
    assert sum(intensity.LAYER_NORM_FLOPS.values()) == _operations(layer_norm) == 7
    assert sum(intensity.RMS_NORM_FLOPS.values()) == _operations(rms_norm) == 4


@pytest.mark.parametrize(
    ("flops", "dtype", "value"),
    [
        (intensity.LAYER_NORM_FLOPS, "bfloat16", 7 / 4),
        (intensity.LAYER_NORM_FLOPS, "float32", 7 / 8),
        (intensity.RMS_NORM_FLOPS, "float16", 1.0),
        (intensity.RMS_NORM_FLOPS, "float32", 0.5),
    ],
)
def test_intensity(flops, dtype, value):
    assert intensity.intensity(flops, dtype) == value


def test_both_norms_are_far_below_the_ridge():
    assert intensity.ridge(10e12, 2e12) == 5
    most = intensity.intensity(intensity.LAYER_NORM_FLOPS)
    assert all(7 * most < ridge for ridge in intensity.RIDGES.values())


def check_traffic(traffic):
    # x and y, one gain, rstd: counted tensor by tensor.
    for rows, d, size in ((1, 1, 2), (16384, 4096, 2), (7, 13, 4)):
        big, vector, statistic = rows * d * size, d * size, rows * 4
        assert traffic(rows, d, size, False) == 2 * big + vector + statistic
        assert traffic(rows, d, size, True) == 2 * (big + vector + statistic)


test_traffic, test_rejects = suite(intensity.traffic, [check_traffic])
