"""α, β and the initialization against the paper's table and torchscale's code."""

import math

import pytest

from snippets.deepnorm.budget import budget
from snippets.deepnorm.coefficients import coefficients
from tests.wrong import suite

STACKS = [(1, 0), (6, 0), (0, 1), (0, 7), (0, 1000), (1, 1), (6, 18), (18, 6)]


def torchscale(n, m):
    """As torchscale's encoder.py and decoder.py write it (0.87 as 1 / 1.15)."""
    if n and m:
        mixed = math.pow(math.pow(n, 4) * m, 0.0625)
        decoder = math.pow(3.0 * m, 0.25), 1 / math.pow(12.0 * m, 0.25)
        return {
            "encoder": (mixed * 0.81, 1.15 / mixed / 1.15 * 0.87),
            "decoder": decoder,
        }
    layers = n or m
    pair = math.pow(2.0 * layers, 0.25), 1 / math.pow(8.0 * layers, 0.25)
    return {"encoder" if n else "decoder": pair}


def check_table(function):
    for n, m in STACKS:
        ours, theirs = function(n, m), torchscale(n, m)
        assert ours.keys() == theirs.keys(), (n, m)
        for name, pair in theirs.items():
            assert tuple(ours[name]) == pytest.approx(pair, rel=1e-12), (n, m, name)


test_right, test_known_wrong = suite(coefficients, [check_table])


@pytest.mark.parametrize("layers", [(0, 0), (-1, 0), (3, -1), (-2, 3)])
def test_no_layers(layers):
    with pytest.raises(ValueError, match="layers"):
        coefficients(*layers)


@pytest.mark.parametrize("n", [1, 2, 12, 100, 5000])
def test_the_budget_is_one(n):
    """4 N β² / α² = 1, and 6 M β² / α² = 1 with three sublayers."""
    assert budget(n, *coefficients(n)["encoder"]) == pytest.approx(1)
    alpha, beta = coefficients(n, n)["decoder"]
    assert 6 * n * beta**2 / alpha**2 == pytest.approx(1)
    assert 2 * n**0.5 == pytest.approx((4 * n) ** 0.5)
    assert budget(n, 2 * n**0.5, 1) == pytest.approx(1)
    assert budget(n, 1, 1 / (2 * n**0.5)) == pytest.approx(1)


def test_minimax():
    assert coefficients(decoder_layers=80)["decoder"].alpha == 3.5565588200778455
