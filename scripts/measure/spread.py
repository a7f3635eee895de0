"""Medians, intervals, paired differences: what pages derive from raw samples.

Pure Python, since it runs while the site is built.
"""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import atan, comb, cos, erf, exp, inf, isfinite, sqrt

LEVEL = 0.95
POWER = 0.8  # how often a resolvable effect would be found
UNRESOLVED = {"en": "not resolved", "zh": "未分辨出差别"}


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


def unresolved(interval: tuple[float, float], floor: float) -> bool:
    """Whether a ratio cannot be told from 1 given the noise floor: within noise."""
    low, high = interval
    return low <= 1 + floor and high >= 1 / (1 + floor)


# Differences between arms, seed by seed --------------------------------------


@dataclass(frozen=True)
class Paired:
    """The mean of differences over seeds and its standard error."""

    mean: float
    error: float
    n: int

    @property
    def resolved(self) -> bool:
        """Whether a paired t test, two-sided at 5 %, tells the mean from zero."""
        return abs(self.mean) > student(self.n - 1) * self.error

    @property
    def resolvable(self) -> float:
        """The smallest true difference that so many seeds would have shown.

        Shown in 80 % of repetitions by the test of ``resolved``, if differences
        scatter as these do. What is not resolved may be anything below it.
        """
        return noncentrality(self.n - 1) * self.error

    def text(self, digits: int = 3) -> str:
        """−0.010 ± 0.006: mean and standard error."""
        return f"{number(self.mean, digits)} ± {number(self.error, digits)}"

    def bound(self, digits: int = 3) -> str:
        """The text of ``resolvable``, for 'not resolved: ... would have shown'."""
        return number(self.resolvable, digits)


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Paired:
    """Ours less theirs; both in the order of the seeds, at least two, all finite."""
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    if len(differences) < 2 or not all(map(isfinite, differences)):
        raise ValueError("a paired difference needs two seeds or more, none failed")
    error = statistics.stdev(differences) / sqrt(len(differences))
    return Paired(statistics.fmean(differences), error, len(differences))


def _simpson(f: Callable[[float], float], low: float, high: float) -> float:
    steps = 400
    width = (high - low) / steps
    weighted = (f(low + i * width) * (4 if i % 2 else 2) for i in range(1, steps))
    return (f(low) + f(high) + sum(weighted)) * width / 3


def _root(f: Callable[[float], float], high: float) -> float:
    """Where an increasing function crosses zero, between 0 and high."""
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return high


@cache
def student(freedom: int, level: float = LEVEL) -> float:
    """The t with P(|T| < t) = level for Student's T.

    With t = √freedom·tan θ the density in θ is cos θ to the power freedom - 1.
    """

    def inside(t: float) -> float:
        return _simpson(lambda a: cos(a) ** (freedom - 1), 0, atan(t / sqrt(freedom)))

    whole = inside(inf)
    return _root(lambda t: inside(t) / whole - level, 1e4)


@cache
def noncentrality(freedom: int, power: float = POWER, level: float = LEVEL) -> float:
    """How many standard errors a difference needs to be found with this power.

    T is (normal + d)/s, where freedom·s² has a chi-squared distribution: the power
    is the mean over s of P(|normal + d| > t·s).
    """
    t = student(freedom, level)

    def density(s: float) -> float:  # of s, up to a factor
        return s ** (freedom - 1) * exp(freedom * (1 - s * s) / 2)

    def below(x: float) -> float:
        return (1 + erf(x / sqrt(2))) / 2

    high = 1 + 8 / sqrt(freedom)
    whole = _simpson(density, 0, high)

    def found(d: float) -> float:
        hit = _simpson(
            lambda s: density(s) * (below(d - t * s) + below(-d - t * s)), 0, high
        )
        return hit / whole

    return _root(lambda d: found(d) - power, 1e3)


# As people write numbers ---------------------------------------------------


def number(value: float, digits: int = 2) -> str:
    """As people write it: a true minus, none before a zero, and ∞."""
    return f"{value:z.{digits}f}".replace("-", "\u2212").replace("inf", "∞")


def integer(value: float) -> str:
    """Without decimals, in threes of digits from five digits on: 4096, 131,072."""
    return f"{value:.0f}" if abs(value) < 10_000 else f"{value:,.0f}"


def span(values: Sequence[float], digits: int = 2) -> str:
    """Least and greatest: [−0.10, 0.25]."""
    return f"[{number(min(values), digits)}, {number(max(values), digits)}]"


def size(moved: int) -> str:
    """Bytes as people write them: 512 B, 64 KiB, 1.5 GiB."""
    amount, units = float(moved), ["B", "KiB", "MiB", "GiB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{amount:.3g} {units[0]}"


def duration(seconds: float) -> str:
    """Seconds to three digits: 3.1 ns, 175 µs, 9.99 ms, 2.5 s."""
    for unit, scale in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds:.3g} s"
