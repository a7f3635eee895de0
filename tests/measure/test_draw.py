"""The strokes that figures share, and that a figure's digest follows them."""

import pytest

from scripts.measure import digest, draw, look

PLOT = """
from scripts.measure.draw import {names}

def measure(size):
    return 1

def plot(record, words):
    return {names}
"""


@pytest.fixture
def axis():
    from matplotlib.figure import Figure

    return Figure().subplots()


def test_band_is_the_median_between_least_and_greatest(axis):
    samples = [[3.0, 1.0, 8.0], [5.0, 2.0]]
    draw.band(axis, [10, 20], samples, {"color": "#0072b2", "marker": "s"}, label="a")
    (line,), (band,) = axis.lines, axis.collections
    assert list(line.get_ydata()) == [3.0, 3.5]
    assert (line.get_label(), line.get_marker()) == ("a", "s")
    ends = {tuple(point) for point in band.get_paths()[0].vertices.tolist()}
    assert ends == {(10.0, 1.0), (10.0, 8.0), (20.0, 2.0), (20.0, 5.0)}
    assert band.get_alpha() == 0.13


def test_log_ticks_at_the_grid_alone(axis):
    draw.log_ticks(axis, [1e-3, 3e-3, 1e-2])
    axis.set_xlim(5e-4, 2e-2)
    assert axis.get_xscale() == "log"
    assert [text.get_text() for text in axis.get_xticklabels()] == [
        "0.001",
        "0.003",
        "0.01",
    ]
    assert not len(axis.xaxis.get_minorticklocs())


def test_axes_and_levels_are_named(axis):
    words = {"t": "Title", "x": "Below", "y": "Left"}
    draw.name_axes(words, (axis, "t", "x", "y"))
    title = axis.get_title() or axis.get_title("left")  # as look.py sets it
    found = title, axis.get_xlabel(), axis.get_ylabel()
    assert found == ("Title", "Below", "Left")
    draw.level(axis, 2.0, 5.0, "guess", line=2)
    assert list(axis.lines[-1].get_ydata()) == [5.0, 5.0]
    assert axis.lines[-1].get_color() == look.MUTED
    assert (axis.texts[-1].get_text(), axis.texts[-1].xy) == ("guess", (2.0, 5.0))


@pytest.fixture
def drawn_with(tmp_path, monkeypatch):
    """The digest of a plot that uses some names of a draw.py with this text."""

    def part(names: str, text: str) -> str:
        folder = tmp_path / "scripts" / "measure"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "draw.py").write_text(text, encoding="utf-8")
        own = PLOT.replace("{names}", names) if names else "def plot():\n    return 1\n"
        (tmp_path / "toy_loss.py").write_text(own, encoding="utf-8")
        monkeypatch.setattr(digest, "ROOT", tmp_path)
        monkeypatch.setattr(digest, "EXPERIMENTS", tmp_path)
        digest._parsed.cache_clear()
        return digest.part_digest("toy_loss", ("plot",))

    return part


STROKES = "A = 1\n\ndef a():\n    return A\n\ndef b():\n    return 2\n"


@pytest.mark.parametrize(
    ("names", "old", "new", "same"),
    [
        ("a", "A = 1", "A = 2", False),
        ("a", "return A", "return -A", False),
        ("a", "return 2", "return 3", True),
        ("b", "return 2", "return 3", False),
        ("b", "A = 1", "A = 2", True),
        ("a, b", "return 2", "return 3", False),
        ("", "A = 1", "A = 2", True),
        ("a", "A = 1", "A = 1  # said", True),
    ],
)
def test_a_figure_ages_by_the_strokes_it_uses(drawn_with, names, old, new, same):
    before = drawn_with(names, STROKES)
    after = drawn_with(names, STROKES.replace(old, new))
    assert (before == after) == same
