"""Medians, their intervals and ties: what pages derive from raw samples.

Pure Python, since it runs while the site is built.
"""

import random
import statistics
from collections.abc import Sequence
from functools import cache
from math import comb

LEVEL = 0.95


def median_interval(
    samples: Sequence[float], level: float = LEVEL
) -> tuple[float, float]:
    """An interval for the median from order statistics: no distribution assumed.

    The narrowest symmetric pair of ranks that covers the median with at least
    ``level``; the range of the samples when there are too few of them.
    """
    ordered = sorted(samples)
    n = len(ordered)
    below, rank = 0.0, 0  # P(Binomial(n, 1/2) <= rank - 1)
    while rank < n // 2:
        more = below + comb(n, rank) / 2**n
        if 1 - 2 * more < level:
            break
        below, rank = more, rank + 1
    low = max(rank - 1, 0)
    return ordered[low], ordered[n - 1 - low]


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The ratio of two medians."""
    return statistics.median(over) / statistics.median(under)


@cache
def _draws(seed: int, resamples: int, over: int, under: int) -> list:
    """Indices of the resamples: the same for all samples of these sizes."""
    draw = random.Random(seed)
    return [
        (
            draw.choices(range(over), k=over),
            under and draw.choices(range(under), k=under),
        )
        for _ in range(resamples)
    ]


def ratio_interval(
    over: Sequence[float],
    under: Sequence[float],
    *,
    level: float = LEVEL,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """A bootstrap interval for the ratio of two medians.

    Samples of one round belong together, so whole rounds are drawn when both
    sides have the same number of samples.
    """
    paired = len(over) == len(under)
    draws = _draws(seed, resamples, len(over), 0 if paired else len(under))
    found = [
        ratio([over[k] for k in i], [under[k] for k in (i if paired else j)])
        for i, j in draws
    ]
    found.sort()
    tail = int((1 - level) / 2 * resamples)
    return found[tail], found[resamples - 1 - tail]


def noise_floor(intervals: Sequence[tuple[float, float]]) -> float:
    """How far from 1 the A/A controls' ratio intervals reach, as a factor - 1."""
    return max(max(high, 1 / low) - 1 for low, high in intervals)


def tie(interval: tuple[float, float], floor: float) -> bool:
    """Whether a ratio cannot be told from 1 given the noise floor."""
    low, high = interval
    return low <= 1 + floor and high >= 1 / (1 + floor)


def number(value: float, digits: int = 2) -> str:
    """As people write it: a true minus, none before a zero, and ∞."""
    return f"{value:z.{digits}f}".replace("-", "\u2212").replace("inf", "∞")


def integer(value: float) -> str:
    """Without decimals, in threes of digits from five digits on: 4096, 131,072."""
    return f"{value:.0f}" if abs(value) < 10_000 else f"{value:,.0f}"


def span(values: Sequence[float], digits: int = 2) -> str:
    """Least and greatest: [−0.10, 0.25]."""
    return f"[{number(min(values), digits)}, {number(max(values), digits)}]"
