"""The strokes that figures share."""

import pytest
from matplotlib.colors import to_hex

from scripts.measure import draw, figures


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
    assert to_hex(band.get_facecolor()[0]) == to_hex(line.get_color()) == "#0072b2"
    assert list(band.get_linewidth()) == [0]


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
    title = axis.get_title() or axis.get_title("left")  # as figures.py sets it
    found = title, axis.get_xlabel(), axis.get_ylabel()
    assert found == ("Title", "Below", "Left")
    draw.level(axis, 2.0, 5.0, "guess", line=2)
    assert list(axis.lines[-1].get_ydata()) == [5.0, 5.0]
    assert axis.lines[-1].get_color() == axis.texts[-1].get_color() == figures.MUTED
    assert axis.lines[-1].get_linestyle() == figures.LINES[2] or figures.LINES[2] != "-"
    assert axis.lines[-1].get_linewidth() == 1.2
    assert axis.texts[-1].get_va() == "top" and axis.texts[-1].get_ha() == "left"
    assert axis.texts[-1].xyann == (0, -3)  # points below the line
    assert (axis.texts[-1].get_text(), axis.texts[-1].xy) == ("guess", (2.0, 5.0))
