"""What the facts of trained models are made of: medians by arm, best rates, pairs.

Pure Python, since it runs while the site is built.
"""

from collections.abc import Callable, Iterable, Sequence
from math import inf, isfinite
from statistics import median

from scripts.measure import spread


def with_inf(values: Iterable[float | None]) -> list[float]:
    """What is no number, null in a record, counts as infinite: worse than any."""
    return [inf if value is None else value for value in values]


def apart(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Ours less theirs, seed by seed; two that are both infinite are equal."""
    pairs = zip(ours, theirs, strict=True)
    return [0.0 if a == b else a - b for a, b in pairs]


def best(rates: Iterable, losses: Callable[..., Sequence[float]]):
    """The rate whose losses, one for each seed, have the least median; of equals
    the first."""
    return min(rates, key=lambda rate: median(losses(rate)))


def gap(ours: Sequence[float], theirs: Sequence[float]) -> spread.Paired | None:
    """Ours less theirs, paired; None where a seed lacks its run or a run failed."""
    if len(ours) != len(theirs) or not all(map(isfinite, [*ours, *theirs])):
        return None
    return spread.paired(ours, theirs)


def ahead(losses: Sequence[float], controls: Iterable[Sequence[float]]) -> bool:
    """Whether the losses are below each control's, resolved over the seeds."""
    gaps = [gap(losses, control) for control in controls]
    return all(each and each.mean < 0 and each.resolved for each in gaps)


class Found(dict):
    """Facts as they are found: {name: text}."""

    def median(
        self, name: str, values: Sequence[float], digits: int = 2, unit: str = ""
    ) -> None:
        """The median, and `<name>_range`, the least and the greatest."""
        self[name] = spread.number(median(values), digits) + unit
        self[f"{name}_range"] = spread.span(values, digits) + unit

    def paired(
        self,
        name: str,
        ours: Sequence[float],
        theirs: Sequence[float],
        digits: int = 3,
        end: str = "",
    ) -> spread.Paired | None:
        """Ours less theirs with its error, `<name><end>`, and `<name>_bound`.

        Nothing where a seed lacks its run or a run failed.
        """
        if found := gap(ours, theirs):
            self[f"{name}{end}"] = found.text(digits)
            self[f"{name}_bound"] = found.bound(digits)
        return found

    def against(
        self, name: str, ours: Sequence[float], theirs: Sequence[float], digits: int = 3
    ) -> None:
        """Ours less theirs: median, `_range`, and `_paired` and `_bound`, of three
        digits."""
        self.median(name, apart(ours, theirs), digits)
        self.paired(name, ours, theirs, end="_paired")
