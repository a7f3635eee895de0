"""Drawings that explain: tensor axes, blocks, data paths. No measurement in them.

A diagram is one file, ``scripts/site/pictures/diagrams/<name>.py``, with

    WORDS = {"zh": {...}, "en": {...}}   every word in it; "caption" and "alt" too
    def draw(words) -> Canvas
    INPUTS = (path, ...)                 the data that it is drawn from, if any

`render` draws it in both languages in the figures' look; a page shows it with
``[[ diagrams.<name> ]]``.
"""

import hashlib
import importlib
from functools import cache
from pathlib import Path

from scripts.measure import digest as code
from scripts.measure import figures, svg
from scripts.measure.figures import GRID, INK, MUTED, PANEL, SERIES, SMALL, TEXT

__all__ = [
    "GRID",
    "INK",
    "MUTED",
    "NORM",
    "PANEL",
    "SERIES",
    "SMALL",
    "TEXT",
    "Canvas",
]
NORM = SERIES[1]  # a norm in a block, whose stream has the first colour
FOLDER = Path(__file__).parent / "diagrams"
FIGURES = figures.FIGURES / "diagrams"
PAD = 0.06  # inches between a box's edge and its words


class Canvas:
    """A sheet measured in inches: x to the right, y upwards, (0, 0) bottom left.

    ``width`` is at most 5 inches: then 10.5 points are read at 10 px on a phone.
    """

    def __init__(self, width: float = figures.SIZE[0], height: float = 3.0):
        figures._prepare()
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure = Figure(figsize=(width, height), dpi=72)
        FigureCanvasAgg(self.figure)
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, width), ylim=(0, height))
        self.axes.set_axis_off()

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        text: str = "",
        *,
        fill: str = PANEL,
        edge: str = MUTED,
        colour: str = INK,
        size: float = TEXT,
        round_by: float = 0.06,
        lines: str = "-",
        **font: object,
    ) -> tuple[float, float]:
        """A rounded box with its words centred; its centre. "none" is clear."""
        from matplotlib.patches import FancyBboxPatch

        style = f"round,pad=0,rounding_size={round_by}" if round_by else "square,pad=0"
        self.axes.add_patch(
            FancyBboxPatch(
                (x, y),
                width,
                height,
                boxstyle=style,
                facecolor=fill,
                edgecolor=edge,
                linewidth=1.1,
                linestyle=lines,
                mutation_aspect=1,
            )
        )
        centre = (x + width / 2, y + height / 2)
        if text:
            wide = max(figures._width(s, size, **font) for s in text.split("\n"))
            assert wide <= width - PAD, f"{text!r} is {wide:.2f} in, box {width:.2f}"
            self.text(*centre, text, size=size, colour=colour, **font)
        return centre

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = TEXT,
        colour: str = INK,
        align: str = "center",
        **font: object,
    ) -> None:
        """Words at a place; ``align`` says which of their sides stands at x."""
        self.axes.text(
            x, y, text, fontsize=size, color=colour, ha=align, va="center", **font
        )

    def line(
        self,
        points: list[tuple[float, float]],
        *,
        colour: str = MUTED,
        width: float = 1.4,
        arrow: bool = False,
        lines: str = "-",
    ) -> None:
        """A line through points, with a head at its end if ``arrow``."""
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path as Outline

        self.axes.add_patch(
            FancyArrowPatch(
                path=Outline(points),
                arrowstyle="-|>" if arrow else "-",
                mutation_scale=9,
                color=colour,
                linewidth=width,
                linestyle=lines,
                shrinkA=0,
                shrinkB=0,
                fill=arrow,
                joinstyle="miter",
                capstyle="butt",
            )
        )

    def arrow(self, *points: tuple[float, float], **options: object) -> None:
        self.line(list(points), arrow=True, **options)

    def plus(self, x: float, y: float, radius: float = 0.11) -> None:
        """The sum of a residual connection: a circle with a plus."""
        from matplotlib.patches import Circle

        self.axes.add_patch(
            Circle((x, y), radius, facecolor=PANEL, edgecolor=INK, linewidth=1.1)
        )
        arm = radius * 0.55
        for points in ([(x - arm, y), (x + arm, y)], [(x, y - arm), (x, y + arm)]):
            self.line(points, colour=INK, width=1.2)


@cache
def load(name: str):
    return importlib.import_module(f"scripts.site.pictures.diagrams.{name}")


def names() -> list[str]:
    return sorted(file.stem for file in FOLDER.glob("[a-z]*.py"))


def path(name: str, language: str) -> Path:
    """Where the drawing stands: docs/figures/diagrams/<name>.<language>.svg."""
    return FIGURES / f"{name}.{language}.svg"


def digest(name: str) -> str:
    """The digest of everything that the drawing is made with."""
    modules = (__file__, figures.__file__, svg.__file__)
    files = (FOLDER / f"{name}.py", *map(Path, modules))
    joined = "\n".join(code.file_digest(file) for file in files)
    for data in getattr(load(name), "INPUTS", ()):  # what it is drawn from
        joined += hashlib.sha256(data.read_bytes()).hexdigest()
    return hashlib.sha256(joined.encode()).hexdigest()[: code.DIGITS]


def draw(name: str, language: str) -> Path:
    """Draw one diagram in one language into docs/figures/diagrams."""
    module = load(name)
    canvas = module.draw(module.WORDS[language])
    return figures.save(canvas.figure, path(name, language))
