"""One thing, one colour: in plots, diagrams and live figures."""

import re

import pytest

from scripts.measure import figures, series_colours
from scripts.measure.records import ROOT, RecordError
from scripts.site.pictures import diagram
from scripts.site.pictures.diagram import NORM, SERIES, Canvas

EXPLORE = ROOT / "docs" / "theme" / "explore" / "figures" / "explore.css"


@pytest.mark.parametrize("name", ["post", "Post-Norm", "layer_norm", "soft_cap"])
def test_a_thing_is_drawn_in_its_colour(name):
    canvas = Canvas(2.0, 1.0)
    canvas.axes.plot([0, 1], [0, 1], label=name, **figures.style(name))
    figures.check_colours(canvas.figure)


@pytest.mark.parametrize("drawn", ["plot", "text", "bar"])
def test_a_second_colour_is_refused(drawn):
    canvas = Canvas(2.0, 1.0)
    wrong = figures.style("pre")["color"]
    if drawn == "plot":
        canvas.axes.plot([0, 1], [0, 1], label="Post-Norm", color=wrong)
    if drawn == "text":
        canvas.axes.text(0, 0, "Post-Norm", color=wrong)
    if drawn == "bar":
        canvas.axes.bar([0], [1], label="Post-Norm", color=wrong)
    with pytest.raises(RecordError, match="'Post-Norm' is drawn in colour 2, not 1"):
        figures.check_colours(canvas.figure)


def test_grey_is_free_and_so_is_a_name_without_a_colour():
    drawn = [("Post-Norm", figures.MUTED), ("blocks frozen", SERIES[3])]
    assert series_colours.misplaced(drawn, SERIES) == []


WORDS = "\n".join(
    path.read_text(encoding="utf-8")
    for path in (ROOT / "docs" / "data" / "experiments").glob("*.yml")
)


@pytest.mark.parametrize("name", series_colours.COLOURED)
def test_a_thing_is_labelled_so_in_some_figure(name):
    place, labels = series_colours.COLOURED[name]
    assert 0 <= place < len(SERIES)
    written = [re.sub(r" ?\d+$", "", label) for label in labels]  # a number is a fact
    assert [label for label in written if f": {label}" not in WORDS] == []


@pytest.mark.parametrize("name", diagram.names())
def test_norms_of_a_block_have_one_colour(name, monkeypatch):
    module, boxes = diagram.load(name), []
    box = Canvas.box

    def noted(self, *place, **drawn):
        text = place[4] if len(place) > 4 else drawn.get("text", "")
        boxes.append((text, drawn.get("edge")))
        return box(self, *place, **drawn)

    monkeypatch.setattr(Canvas, "box", noted)
    module.draw(module.WORDS["en"])
    norms = {"N", "Norm", "RMSNorm", "LayerNorm", "norm"}
    assert {e for text, e in boxes if text in norms and e in SERIES} <= {NORM}


def test_live_figures_agree():
    css = EXPLORE.read_text(encoding="utf-8")
    for chosen, name in ((r"\.layer", "layer_norm"), (r"\.rms", "rms_norm")):
        rules = re.findall(
            rf"^:is\(explore-geometry, [^{{]*{chosen}\b[^{{]*{{([^}}]*)}}", css, re.M
        )
        own = [rule for rule in rules if "--figure-ink" not in rule]
        colours = {n for rule in own for n in re.findall(r"--figure-(\d)", rule)}
        assert colours == {str(series_colours.PLACES[name] + 1)}
