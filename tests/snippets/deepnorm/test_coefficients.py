"""α, β and the initialization against the paper's table and torchscale's code."""

import math

import pytest

from snippets.deepnorm.budget import budget
from snippets.deepnorm.coefficients import Coefficients, coefficients

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


def _changed(function):
    def changed(encoder_layers=0, decoder_layers=0):
        table = coefficients(encoder_layers, decoder_layers)
        return {
            name: Coefficients(*function(name, encoder_layers, decoder_layers, *pair))
            for name, pair in table.items()
        }

    return changed


def counts_sublayers(encoder_layers=0, decoder_layers=0):
    return coefficients(2 * encoder_layers, 2 * decoder_layers)


def encoder_and_decoder_swapped(encoder_layers=0, decoder_layers=0):
    return coefficients(decoder_layers, encoder_layers)


def one_formula_for_all(encoder_layers=0, decoder_layers=0):
    out = {}
    for name, n in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        if n:
            out[name] = Coefficients((2 * n) ** 0.25, (8 * n) ** -0.25)
    return out


exponent_of_glm = _changed(lambda s, n, m, a, b: (a**2, b**2))
alpha_and_beta_swapped = _changed(lambda s, n, m, a, b: (b, a))
beta_is_one_over_alpha = _changed(lambda s, n, m, a, b: (a, 1 / a))
beta_above_one = _changed(lambda s, n, m, a, b: (a, 1 / b))
alpha_only = _changed(lambda s, n, m, a, b: (a, 1.0))
eight_and_two_swapped = _changed(lambda s, n, m, a, b: (a * 4**0.25, b * 4**0.25))
cross_attention_forgotten = _changed(
    lambda s, n, m, a, b: (
        ((2 * m) ** 0.25, (8 * m) ** -0.25) if s == "decoder" and n else (a, b)
    )
)
factors_forgotten = _changed(
    lambda s, n, m, a, b: (a / 0.81, b / 0.87) if s == "encoder" and m else (a, b)
)
eighth_root = _changed(
    lambda s, n, m, a, b: (
        (0.81 * (n**4 * m) ** 0.125, 0.87 * (n**4 * m) ** -0.125)
        if s == "encoder" and m
        else (a, b)
    )
)

VARIANTS = [
    counts_sublayers,
    one_formula_for_all,
    exponent_of_glm,
    alpha_and_beta_swapped,
    beta_is_one_over_alpha,
    beta_above_one,
    alpha_only,
    eight_and_two_swapped,
    encoder_and_decoder_swapped,
    cross_attention_forgotten,
    factors_forgotten,
    eighth_root,
]
for _name, _variant in list(globals().items()):
    if any(_variant is each for each in VARIANTS):
        _variant.__name__ = _name


def test_right():
    check_table(coefficients)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by([check_table], variant)


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
