"""Diagrams: words that fit, do not touch, and say the same in both languages."""

from itertools import combinations

import pytest

from scripts.measure import figures
from scripts.site.pictures import diagram
from scripts.site.pictures.diagram import Canvas
from scripts.site.reading.source import LANGUAGES
from tests.pages.page_prose import EN
from tests.pages.test_facts import texts

NAMES = diagram.names()


def extents(canvas: Canvas) -> list[tuple[str, float, float, float, float]]:
    """(text, left, bottom, right, top) of all words, in inches."""
    found = []
    for item in canvas.axes.texts:
        if not (text := item.get_text()):
            continue
        lines, size = text.split("\n"), item.get_fontsize()
        weight = item.get_fontweight()
        wide = max(figures._width(line, size, weight=weight) for line in lines)
        tall = len(lines) * size * 1.15 / 72
        x, y = item.get_position()
        left = x - wide * {"left": 0, "center": 0.5, "right": 1}[item.get_ha()]
        if item.get_rotation() == 90:
            left, y, wide, tall = x - tall / 2, y, tall, wide
        found.append((text, left, y - tall / 2, left + wide, y + tall / 2))
    return found


def violations(canvas: Canvas) -> list[str]:
    """What a reader could not read."""
    found, marks = [], extents(canvas)
    for text, left, bottom, right, top in marks:
        if left < 0 or bottom < 0 or right > canvas.width or top > canvas.height:
            found.append(f"{text!r} leaves the sheet")
    for one, two in combinations(marks, 2):
        wide = min(one[3], two[3]) - max(one[1], two[1])
        tall = min(one[4], two[4]) - max(one[2], two[2])
        if wide > 0.01 and tall > 0.02:
            found.append(f"{one[0]!r} touches {two[0]!r}")
    small = {item.get_fontsize() for item in canvas.axes.texts} - {0.0}
    if small and min(small) < figures.SMALL:
        found.append(f"text of {min(small):g} points, at least {figures.SMALL}")
    if canvas.width > figures.SIZE[0]:
        found.append(f"{canvas.width} inches wide, at most {figures.SIZE[0]}")
    return found


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_diagram_can_be_read(name, lang, no_violations):
    module = diagram.load(name)
    no_violations(
        f"{name}.{lang}: {v}" for v in violations(module.draw(module.WORDS[lang]))
    )


@pytest.mark.parametrize("name", NAMES)
def test_diagram_speaks_both_languages(name):
    words = diagram.load(name).WORDS
    assert set(words) == set(LANGUAGES)
    assert words["en"].keys() >= {"caption", "alt"}
    assert texts(words["zh"]).keys() == texts(words["en"]).keys()


@pytest.mark.parametrize("name", NAMES)
def test_diagram_is_on_a_page(name):
    assert any(f"[[ diagrams.{name} ]]" in page.text for page in EN.values())


def test_no_drawing_without_its_source():
    wanted = {diagram.path(name, lang) for name in NAMES for lang in LANGUAGES}
    assert set(diagram.FIGURES.glob("*")) == wanted


def test_good():
    canvas = Canvas(height=1.0)
    canvas.box(0.2, 0.3, 1.2, 0.4, "RMSNorm")
    canvas.text(2.5, 0.5, "残差")
    canvas.plus(4, 0.5)
    canvas.arrow((3, 0.5), (3.8, 0.5))
    assert violations(canvas) == []


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (lambda c: c.text(0.1, 0.5, "to the left"), "leaves the sheet"),
        (lambda c: c.text(2.5, 0.98, "above"), "leaves the sheet"),
        (lambda c: (c.text(2, 0.5, "one"), c.text(2.1, 0.55, "two")), "touches"),
        (lambda c: c.text(2, 0.5, "tiny", size=6), "text of 6 points"),
    ],
)
def test_bad(draw, says):
    canvas = Canvas(height=1.0)
    draw(canvas)
    assert any(says in v for v in violations(canvas))


def test_words_wider_than_their_box_are_an_error():
    with pytest.raises(AssertionError, match="box"):
        Canvas(height=1.0).box(0, 0, 0.5, 0.4, "much too wide")
