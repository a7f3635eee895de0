"""Kernels below the memory: an arrow for each large tensor read or written."""

from pathlib import Path

from scripts.site.pictures.diagram import GRID, SERIES, SMALL, Canvas

FILE = Path(__file__)  # part of what a diagram with lanes is drawn from
LEFT, RIGHT, BAR, BOX, TRIP = 0.08, 4.92, 0.24, 0.32, 0.42  # inches
GAP, WIDEST = 0.12, 2.2
Kernel = tuple[str, list[str], list[str]]  # name, marks of its reads, of its writes


def lane(
    canvas: Canvas,
    top: float,
    title: str,
    total: str,
    memory: str,
    kernels: list[Kernel],
) -> None:
    """One way to do it: its title and total, the memory, and its kernels."""
    canvas.text(LEFT, top - 0.1, title, align="left", weight="bold")
    canvas.text(RIGHT, top - 0.1, total, align="right", weight="bold")
    bar = top - 0.26 - BAR
    canvas.box(LEFT, bar, RIGHT - LEFT, BAR, memory, round_by=0, fill=GRID, edge=GRID)
    wide = min((RIGHT - LEFT + GAP) / len(kernels) - GAP, WIDEST)
    left = (LEFT + RIGHT - len(kernels) * (wide + GAP) + GAP) / 2
    for i, (name, reads, writes) in enumerate(kernels):
        x, low = left + i * (wide + GAP), bar - TRIP - BOX
        canvas.box(x, low, wide, BOX, name, size=SMALL)
        trips = [(r, SERIES[0]) for r in reads] + [(w, SERIES[1]) for w in writes]
        for n, (mark, colour) in enumerate(trips):
            place = x + wide * (n + 0.5) / len(trips) - 0.06
            ends = [(place, bar), (place, low + BOX)]
            canvas.arrow(*(ends if colour == SERIES[0] else ends[::-1]), colour=colour)
            y = low + BOX + TRIP / 2
            canvas.text(place + 0.06, y, mark, align="left", size=SMALL)
