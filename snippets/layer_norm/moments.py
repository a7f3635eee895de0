# --8<-- [start:sum_of_squares]
from typing import NamedTuple

import torch
from torch import Tensor


def sum_of_squares(x: Tensor) -> Tensor:
    """Biased variance as E[x²] - E[x]², in one pass and x's dtype.

    x is (..., d), the result (...). Loses all digits when the mean is large.
    """
    total = squares = torch.zeros_like(x[..., 0])
    for feature in x.unbind(dim=-1):
        total = total + feature
        squares = squares + feature.square()
    d = x.shape[-1]
    return squares / d - (total / d).square()


# --8<-- [end:sum_of_squares]


# --8<-- [start:two_passes]
def two_passes(x: Tensor) -> Tensor:
    """Biased variance: first the mean, then the squared distances from it.

    x is (..., d), the result (...).
    """
    features = x.unbind(dim=-1)
    mean = sum(features) / len(features)
    return sum((each - mean).square() for each in features) / len(features)


# --8<-- [end:two_passes]


# --8<-- [start:welford]
class Moments(NamedTuple):
    """Count, mean and summed squared distance from the mean, so far."""

    count: int
    mean: Tensor
    spread: Tensor  # the variance is spread / count


def welford(x: Tensor) -> Moments:
    """Moments over the last dimension in one pass. Welford (1962).

    x is (..., d) with d > 0; mean and spread are (...).
    """
    count, mean = 0, torch.zeros_like(x[..., 0])
    spread = torch.zeros_like(mean)
    for feature in x.unbind(dim=-1):
        count += 1
        step = feature - mean
        mean = mean + step / count
        spread = spread + step * (feature - mean)  # old and new mean
    return Moments(count, mean, spread)


# --8<-- [end:welford]


# --8<-- [start:merge]
def merge(a: Moments, b: Moments) -> Moments:
    """Moments of two parts together. Chan, Golub & LeVeque (1979)."""
    count = a.count + b.count
    step = b.mean - a.mean
    mean = a.mean + step * (b.count / count)
    between = step.square() * (a.count * b.count / count)
    return Moments(count, mean, a.spread + b.spread + between)


def threads(x: Tensor, width: int = 32) -> Moments:
    """Moments the way a GPU works: one Welford a thread, merged in pairs.

    x is (..., d) with d >= width; thread i reads features i, i + width, ...
    """
    parts = [welford(x[..., i::width]) for i in range(width)]
    while len(parts) > 1:
        odd = parts[len(parts) // 2 * 2 :]  # waits for the next round
        parts = [*map(merge, parts[::2], parts[1::2]), *odd]
    return parts[0]


# --8<-- [end:merge]
