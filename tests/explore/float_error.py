"""How far the engine is from torch: float64 judges, torch's float32 is the measure."""

from collections.abc import Iterable, Sequence
from statistics import median

import torch
from torch import Tensor

STEP = 2.0**-23  # of float32 at one
FLOOR = 1e-2  # of the largest value of all: what cancels has no digits of its own
# Two ways to round the same sums differ by chance: in these runs by 1.7 for a single
# tensor at most, over more seeds by 2.8. The largest errors by function and placement
# stand beside torch's in `make bench` (tests/bench/deviations.py).
FACTOR = 2
Run = tuple[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]]


def errors(found: Sequence[Tensor], exact: Sequence[Tensor]) -> list[float]:
    """Largest deviation of each tensor, over the largest value that it should have."""
    exact = [t.detach().double().flatten() for t in exact]
    found = [t.detach().double().flatten() for t in found]
    largest = max(t.abs().max().item() for t in exact)
    return [
        (f - e).abs().max().item() / max(e.abs().max().item(), FLOOR * largest, 1e-30)
        for f, e in zip(found, exact, strict=True)
    ]


def excess(*runs: Run) -> float:
    """The engine's largest error, over that of torch's float32 for the same tensor.

    A run is what was found, the same in float64 and in torch's float32; the error of a
    tensor is the largest of all runs. Rounding hits a small tensor exactly by luck:
    torch's error counts as no less than its median over all tensors.
    """
    if not all(torch.isfinite(t).all() for found, _, _ in runs for t in found):
        return float("inf")
    ours = worst(errors(found, exact) for found, exact, _ in runs)
    theirs = worst(errors(rounded, exact) for _, exact, rounded in runs)
    least = max(median(theirs), STEP)
    pairs = zip(ours, theirs, strict=True)
    return max(own / max(other, least) for own, other in pairs)


def worst(runs: Iterable[list[float]]) -> list[float]:
    return [max(each) for each in zip(*runs, strict=True)]
