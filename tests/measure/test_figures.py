"""Figures: the same bytes on every run, themed, prefixed, honest about staleness."""

import re
import xml.dom.minidom
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from scripts.measure import digest, figures, records
from scripts.measure.records import RecordError

pytest.importorskip("matplotlib", reason="drawing needs matplotlib")

WORDS = {
    "en": {"title": "How large is a square?", "band": "Band: range."},
    "zh": {"title": "平方有多大？", "band": "区间：全距。"},
}


@pytest.fixture(autouse=True)
def every_glyph(monkeypatch, tmp_path):
    """These words need not be in the figures' font."""
    monkeypatch.setattr(figures, "FONT_FILE", tmp_path / "none.ttf")
    monkeypatch.setattr(digest, "is_stale", lambda record: False)


def _figure(record, words):
    figure, axis = figures.new_figure(words, record)
    for i in range(6):
        axis.plot([1, 2, 4], [i, 2 * i, i + 1], label=f"series {i}", **figures.style(i))
    axis.fill_between([1, 2], [0, 1], [2, 3], color=figures.PANEL)
    axis.set_xscale("log")
    figures.plain_log(axis.xaxis)
    figures.legend(axis, columns=3)
    figures.label_ends(
        axis, [(1, "a", figures.INK), (1, "b", figures.MUTED), (9, "c", "k")][:2]
    )
    figures.footer(figure, record, words, words["band"])
    return figure


def _saved(record, path, lang="en"):
    return figures.save(_figure(record, WORDS[lang]), path).read_text("utf-8")


@pytest.mark.parametrize("lang", WORDS)
def test_the_same_bytes_on_every_run(record, tmp_path, lang):
    path = tmp_path / "test-cpu" / f"squares.{lang}.svg"
    first = _saved(record, path, lang)
    assert _saved(record, path, lang) == first
    figure = _figure(record, WORDS[lang])
    once = figures.save(figure, path).read_bytes()
    assert figures.save(figure, path).read_bytes() == once == first.encode()


def test_other_inputs_other_bytes(record, tmp_path):
    path = tmp_path / "test-cpu" / "squares.en.svg"
    first = _saved(record, path)
    later = {**record.provenance, "date": "2027-01-01T00:00:00Z"}
    assert _saved(replace(record, provenance=later), path) != first


def test_ids_of_two_figures_are_not_the_same(record, tmp_path):
    one = _saved(record, tmp_path / "test-cpu" / "squares.en.svg")
    two = _saved(record, tmp_path / "other-gpu" / "squares.zh.svg", "zh")
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (one, two)]
    assert ids[0] and not ids[0] & ids[1]
    for text, known in zip((one, two), ids, strict=True):
        used = re.findall(r'(?:url\(#|href="#)([^")]+)', text)
        assert used and set(used) <= known


def test_one_inline_element_that_scales_and_follows_the_scheme(record, tmp_path):
    text = _saved(record, tmp_path / "test-cpu" / "squares.en.svg")
    xml.dom.minidom.parseString(text)
    assert text.startswith("<svg ")
    head = text[: text.index(">")]
    assert 'viewBox="0 0 360 302.4"' in head
    assert 'role="img"' in head
    assert not re.search(r'\s(width|height|aria-label)="', head)
    for gone in ("<metadata", "<!DOCTYPE", "<?xml", "<dc:date", "Matplotlib v"):
        assert gone not in text
    for name in ("ink", "muted", "grid", "panel", *"123456"):
        assert f"var(--figure-{name}, #" in text
    bare = re.sub(r"var\(--figure-\w+, #[0-9a-f]{6}\)", "", text)
    assert not re.search(r"#[0-9a-fA-F]{6}\b", bare)
    assert "<text" in text and "measured 2026-11-21" in text  # real text


def test_a_colour_of_ones_own_is_refused(record, tmp_path):
    figure = _figure(record, WORDS["en"])
    figure.axes[0].plot([1, 2], [1, 2], color="#123456")
    path = tmp_path / "a" / "b.svg"
    with pytest.raises(RecordError, match="#123456"):
        figures.save(figure, path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("lang", "says"),
    [
        ("en", ["Test CPU, 1 thread;", "torch 2.13.0, Python 3.11.2", "seeds 0–1"]),
        ("zh", ["Test CPU、1 个线程；", "torch 2.13.0、Python 3.11.2", "随机种子 0–1"]),
    ],
)
def test_the_footer_names_device_versions_date_and_seeds(record, lang, says):
    words = figures.provenance_words(record, lang)
    for part in [*says, "2026-11-21"]:
        assert part in words


def test_the_footer_of_a_gpu_names_driver_and_clock(record):
    card = {"kind": "gpu", "name": "NVIDIA H200", "driver": "570.1", "clock_mhz": 1980}
    made = {**record.provenance, "device": card, "seeds": [7]}
    words = figures.provenance_words(
        replace(record, size="full", provenance=made), "en"
    )
    assert words.startswith("NVIDIA H200, driver 570.1, SM 1980 MHz; torch")
    assert words.endswith("measured 2026-11-21; single seed 7.")


@pytest.mark.parametrize(
    ("lang", "says"),
    [("en", "; unfinished: 12 of 84 steps"), ("zh", "；没有测完：84 步里测了 12 步")],
)
def test_the_footer_says_how_far_an_unfinished_run_came(record, lang, says):
    assert says not in figures.provenance_words(record, lang)
    made = {**record.provenance, "steps": [12, 84]}
    assert says in figures.provenance_words(replace(record, provenance=made), lang)


def test_footer_words_have_equal_keys():
    assert figures.FOOTER["zh"].keys() == figures.FOOTER["en"].keys()


@pytest.mark.parametrize("lang", WORDS)
def test_a_stale_record_is_marked_in_its_figure(record, tmp_path, monkeypatch, lang):
    path = tmp_path / "test-cpu" / f"squares.{lang}.svg"
    plain = re.sub(r"\s+", " ", _saved(record, path, lang))
    mark = figures.FOOTER[lang]["stale"]
    assert mark not in plain
    monkeypatch.setattr(digest, "is_stale", lambda record: True)
    assert mark in re.sub(r"\s+", " ", _saved(record, path, lang))


def test_a_missing_glyph_is_an_error_once_the_font_is_there(record, monkeypatch):
    monkeypatch.setattr(figures, "FONT_FILE", Path(__file__))  # anything that exists
    monkeypatch.setattr(figures, "FONTS", ["DejaVu Sans", "DejaVu Sans Mono"])
    with pytest.raises(UserWarning, match="missing from"):
        figures.svg_text(_figure(record, {"title": "\U0001f980", "band": ""}), "x")


def test_colours_stand_out_from_white_and_from_each_other():
    def channels(colour):
        return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]

    def luminance(colour):
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in channels(colour)
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in (*figures.SERIES, figures.INK, figures.MUTED):
        assert 1.05 / (luminance(colour) + 0.05) >= 4.5, colour
    for i, one in enumerate(figures.SERIES):
        for other in figures.SERIES[:i]:
            away = sum(
                abs(a - b) for a, b in zip(channels(one), channels(other), strict=True)
            )
            assert away > 0.3, (one, other)
    styles = [(s["marker"], s["linestyle"]) for s in map(figures.style, range(6))]
    assert len({m for m, _ in styles}) == len({str(s) for _, s in styles}) == 6
    assert figures.style(6) == figures.style(0)


def test_wrapping_chinese_and_english(record):
    figures.new_figure({"title": "t"}, record)  # sets the fonts
    lines = figures.wrap("one two three four five six seven", 1.0, 10)
    assert " ".join(lines) == "one two three four five six seven"
    assert len(lines) > 1
    text = "归一化（normalization）之后，方差是一；均值不一定是零。"
    lines = figures.wrap(text, 1.2, 10)
    assert "".join(lines) == text
    for line in lines:
        assert line[0] not in "，。；）"
        assert line[-1] != "（"
    assert figures.wrap("a\nb", 5, 10) == ["a", "b"]


@pytest.mark.parametrize("shared", [False, True], ids=["axes", "figure"])
def test_title_footer_and_legend_stay_inside_and_apart(record, shared):
    words = {"title": "A long title " * 9, "band": "A long explanation " * 9}
    figure = _figure(record, words)
    if shared:
        figure.axes[0].get_legend().remove()
        figure.axes[0].set_title("A panel")
        figures.legend(figure, columns=3)
    figures.svg_text(figure, "x")
    figure.set_dpi(400)  # fine enough that hinting does not matter
    renderer = figure.canvas.get_renderer()
    boxes = [t.get_window_extent(renderer) for t in [*figure.texts, *figure.legends]]
    boxes.append(figure.axes[0].get_tightbbox(renderer))
    width, height = figure.get_size_inches() * figure.dpi
    for box in boxes:
        assert box.x0 >= 0 and box.x1 <= width
        assert box.y0 >= 0 and box.y1 <= height
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            assert one.y0 >= other.y1 - 2 or other.y0 >= one.y1 - 2


def test_direct_labels_do_not_overlap(record):
    figure, axis = figures.new_figure({"title": "t"}, record)
    axis.plot([0, 1], [0, 1], marker="none", color=figures.INK)
    figures.label_ends(
        axis, [(y, f"label {y}", figures.INK) for y in (0.5, 0.5, 0.51, 0.9)]
    )
    figures.svg_text(figure, "x")
    renderer = figure.canvas.get_renderer()
    boxes = sorted(
        (t.get_window_extent(renderer) for t in axis.texts), key=lambda b: b.y0
    )
    for below, above in pairwise(boxes):
        assert below.y1 <= above.y0 + 1.5


def test_words_are_filled_from_facts():
    words = {"title": "{a} of {b}", "panel": {"x": "{{rows}} {a}"}}
    assert figures.fill(words, {"a": "1", "b": "2"}) == {
        "title": "1 of 2",
        "panel": {"x": "{rows} 1"},
    }
    with pytest.raises(RecordError, match="fact 'b'"):
        figures.fill(words, {"a": "1"})


def test_language_is_said_or_seen():
    assert figures.language({"title": "平方"}) == "zh"
    assert figures.language({"title": "Squares"}) == "en"
    assert figures.language({"title": "RMSNorm", "lang": "zh"}) == "zh"


def test_paths():
    path = figures.figure_path("squares", "test-cpu", "zh")
    assert path == records.ROOT / "docs/figures/test-cpu/squares.zh.svg"


@pytest.fixture
def experiment(folder, monkeypatch):
    """The `squares` experiment as figures finds it, with a plot."""
    path = folder / "squares.py"
    text = path.read_text(encoding="utf-8")
    plot = (
        "from scripts.measure import figures\n"
        "    figure, axis = figures.new_figure(words, record)\n"
        "    figures.footer(figure, record, words)\n"
        "    return figure"
    )
    path.write_text(text.replace("return None", plot), encoding="utf-8")
    monkeypatch.setattr(
        figures, "load_experiment", lambda name: records.load_experiment(name, folder)
    )
    monkeypatch.setattr(digest, "EXPERIMENTS", folder)
    return path


def _edit(path, old, new):
    import sys

    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    sys.modules.pop("scripts.experiments.squares", None)


@pytest.fixture
def squares(record):
    rows = [{"x": 0, "seed": 0, "y": 0.0}, {"x": 1, "seed": 0, "y": 0.5}]
    return replace(record, columns=list(rows[0]), rows=rows)


def test_draw_writes_the_figure(experiment, squares, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", tmp_path / "figures")
    for lang in ("zh", "en"):
        path = figures.draw(squares, lang)
        assert path == tmp_path / "figures" / "test-cpu" / f"squares.{lang}.svg"
        assert path.read_text(encoding="utf-8").startswith("<svg")


def test_what_a_figure_shows_changes_its_digest(experiment, squares, monkeypatch):
    def digests():
        return [figures.figure_digest(squares, lang) for lang in ("zh", "en")]

    before = digests()
    assert before == digests() and before[0] != before[1]
    _edit(experiment, "# a comment", "# another")
    _edit(experiment, "x * x", "x * x + 0")  # measured code: ages, does not redraw
    assert digests() == before
    _edit(experiment, '"Squares"', '"Squared"')
    assert digests()[0] == before[0] and digests()[1] != before[1]
    _edit(experiment, '"Squared"', '"Squares"')
    _edit(experiment, "max(row", "min(row")  # a fact in the words
    assert digests() != before
    _edit(experiment, "min(row", "max(row")
    _edit(experiment, "return figure", "return (figure)")
    assert digests() == before
    _edit(
        experiment,
        "figures.footer(figure",
        "figure.text(0, 0, ''); figures.footer(figure",
    )
    assert digests() != before
    _edit(experiment, "figure.text(0, 0, ''); figures.footer", "figures.footer")
    assert digests() == before
    other = replace(squares, rows=[*squares.rows, {"x": 2, "seed": 0, "y": 2.0}])
    assert figures.figure_digest(other, "en") != before[1]
    monkeypatch.setattr(digest, "is_stale", lambda record: True)
    assert digests() != before
