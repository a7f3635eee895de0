"""What figures of trained models share: medians with their range, axes of a grid.

A figure's digest follows what its `plot` uses of this file, symbol by symbol.
"""

from collections.abc import Callable, Sequence
from math import isinf
from statistics import median

from scripts.measure import figures

MARKS = 4.5  # points: the marks of curves with many places


def band(
    axis,
    places: Sequence[float],
    samples: Sequence[Sequence[float]],
    drawn: dict,
    alpha: float = 0.13,
    **options,
) -> None:
    """A line of medians in a band from the least to the greatest.

    ``samples`` holds the values of each place, one for each seed.
    """
    axis.plot(places, list(map(median, samples)), **drawn, **options)
    low, high = list(map(min, samples)), list(map(max, samples))
    axis.fill_between(places, low, high, color=drawn["color"], alpha=alpha, linewidth=0)


def diverged(axis, places: Sequence[float], arms: Sequence[tuple]) -> None:
    """Crosses on the upper edge where an arm's median is no finite loss.

    ``arms`` holds (color, samples of each place); crosses of one place stand side by
    side on a logarithmic axis.
    """
    cross = dict(marker="x", linestyle="none", markersize=6, markeredgewidth=1.5)
    upper = dict(transform=axis.get_xaxis_transform(), clip_on=False, in_layout=False)
    for i, x in enumerate(places):
        lost = [color for color, samples in arms if isinf(median(samples[i]))]
        for k, color in enumerate(lost):
            beside = x * 1.1 ** (k - (len(lost) - 1) / 2)
            axis.plot([beside], [1], color=color, **cross, **upper)


def log_ticks(
    axis, places: Sequence[float], write: Callable[[float], str] = "{:g}".format
) -> None:
    """A logarithmic x axis with ticks at the grid's places and nowhere else."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axis.set_xscale("log")
    axis.xaxis.set_major_locator(FixedLocator(places))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xticks(places, list(map(write, places)))


def name_axes(words: dict, *panels: tuple) -> None:
    """Title, x label and y label of each panel: (axis, and their keys in words)."""
    for axis, title, below, left in panels:
        axis.set_title(words[title])
        axis.set_xlabel(words[below])
        axis.set_ylabel(words[left])


def level(axis, x: float, height: float, text: str, line: int = 1) -> None:
    """A grey line across the panel, with its text below it from x on."""
    axis.axhline(
        height, color=figures.MUTED, linewidth=1.2, linestyle=figures.LINES[line]
    )
    below = dict(xytext=(0, -3), textcoords="offset points", va="top", ha="left")
    axis.annotate(text, (x, height), color=figures.MUTED, **below)
