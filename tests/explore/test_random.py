"""The engine draws what Python draws."""

import random

import pytest

from tests.explore.conftest import loaded

SEEDS = [0, 1, 7, 624, 20_260, 2**31, 2**32 - 1]
DRAW = """(seed, count) => {
  const draw = new Random(seed);
  return Array.from({ length: count }, () => draw.uniform());
}"""
NORMAL = DRAW.replace("uniform", "normal")


def agrees(engine, seed) -> bool:
    draw = random.Random(seed)
    return engine.run(DRAW, seed, 2000) == [draw.random() for _ in range(2000)]


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform(engine, seed):
    assert agrees(engine, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_normal(engine, seed):
    """Logarithm, sine and cosine may differ in their last bits."""
    draw = random.Random(seed)
    wanted = [draw.gauss() for _ in range(1001)]
    assert engine.run(NORMAL, seed, 1001) == pytest.approx(wanted, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("19650218", "5489"),  # the seeding of 1998
        ("1566083941)) - i", "1566083941)) + i"),
        ("state[0] = 0x80000000;", ""),
        ("y ^= y >>> 11;", "y ^= y >> 11;"),
        ("const high = this.bits() >>> 5;", "const high = this.bits() >>> 6;"),
    ],
)
def test_another_generator_is_rejected(old, new):
    with loaded(old, new) as wrong:
        assert not all(agrees(wrong, seed) for seed in SEEDS)
