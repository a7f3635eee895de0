"""The design of an experiment, folded on its page."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from scripts.measure import design_text, records
from scripts.measure.design import Design, Run
from scripts.site.data import designs, facts
from scripts.site.pages import macros
from scripts.site.reading.source import SourceError
from tests.experiment_checks import tiny_record

RUNS = [
    Run(arm, seed, cell, rate, width=64, steps=9, loss=loss)
    for arm, cell in (("pre", (4,)), ("pre", (8,)), ("ice", (4,)), ("bare", None))
    for rate, loss in ((0.1, 3.0), (0.2, 2.0), (0.4, 1.0 if arm == "bare" else 2.5))
    for seed in (0, 1)
]
TEXTS = {"question": "Is 1 < {two}?", "refuted_by": "A loss.", "stopping": "All stop."}
MORE = {"cell": "layers", "arms": {"bare": "no <b>layers</b>"}}
ZH = {"question": "1 < {two}？", "refuted_by": "错。", "stopping": "停。", **MORE}
DESIGN = Design(
    says=("trains",),
    arms=("pre",),
    words={"en": {**TEXTS, **MORE}, "zh": ZH},
    without_layers="bare",
    frozen={"pre": "ice"},
    lacks={
        "edges.bare": {"en": "At the edge.", "zh": "在边上。"},
        "frozen": {"en": "At the edge.", "zh": "在边上。"},
        "seeds": {"en": "Two seeds.", "zh": "两个种子。"},
    },
    runs=lambda record: RUNS,
)
RECORD = tiny_record("a_b", [{"seed": 0}], (0, 1))
FACTS = {"two": "2"}


@pytest.fixture
def declared(monkeypatch):
    words = {"en": {"pre": "Pre-Norm", "ice": {}}, "zh": {"pre": "前置"}}
    module = SimpleNamespace(DESIGN=DESIGN, WORDS=words)
    monkeypatch.setattr(design_text, "load_experiment", lambda name: module)
    return module


def block(language="en", facts=FACTS) -> str:
    return designs.block(design_text.described(RECORD, language, facts), language)


def plain(language) -> str:
    return designs.plain(design_text.described(RECORD, language, FACTS), language)


def test_a_block_says_all_that_was_declared(declared):
    shown = block()
    assert shown.startswith('<details class="abstract" data-search-exclude><summary>')
    assert "\n" not in shown, "it may stand in a box"
    for said in (
        "<strong>Question</strong>: Is 1 &lt; 2?",
        "<strong>Arms</strong>: Pre-Norm<",
        "<strong>Controls</strong>: no &lt;b&gt;layers&lt;/b&gt;; Pre-Norm, its "
        "blocks frozen at initialization",
        "<strong>Learning rates</strong>: 0.1, 0.2, 0.4",
        "<strong>Widths</strong>: 64",
        "<strong>Seeds</strong>: 0, 1",
        "<strong>Rules that it does not meet</strong>: At the edge. Two seeds.",
        "<th>layers</th><th>4</th><th>8</th>",
        "<td>Pre-Norm</td><td>0.2</td><td>0.2</td>",
        "<td>Pre-Norm, its blocks frozen at initialization</td><td>0.2</td><td></td>",
        "<td>no &lt;b&gt;layers&lt;/b&gt;</td><td>0.4*</td><td>0.4*</td>",
        "* the least or the greatest that was tried",
    ):
        assert said in shown, said


def test_both_languages_say_the_same(declared):
    english = plain("en")
    chinese = plain("zh")
    assert english.count("\n- ") == chinese.count("\n- ") == 9
    assert "**实验设计**\n\n- 问题：1 < 2？\n" in chinese
    assert "- 没有满足的规则：在边上。两个种子。" in chinese
    assert designs.LABELS["en"].keys() == designs.LABELS["zh"].keys()


def test_rates_that_all_failed_are_named(declared):
    failed = [replace(run, loss=None) for run in RUNS]
    declared.DESIGN = replace(DESIGN, runs=lambda record: failed)
    assert "<td>all failed</td>" in block()


def test_without_a_grid_there_is_no_table(declared):
    declared.DESIGN = replace(DESIGN, says=("none",), runs=None, lacks={})
    assert "<table" not in block() and "Learning rates" not in block()


def test_a_word_for_a_number_that_is_no_fact_is_refused(declared):
    with pytest.raises(records.RecordError, match="two"):
        block(facts={})


def test_unknown_names_name_the_known():
    for name in ("no_such_experiment", "norm_bandwidth"):  # the second has no record
        with pytest.raises(SourceError, match=f"unknown design '{name}'; known: act"):
            macros.makers("en", {}, None)["designs"](name)
        with pytest.raises(SourceError, match=f"unknown design '{name}'; known: act"):
            macros.check_names(f"[[ designs.{name} ]]")
    macros.check_names("[[ designs.norm_speed_cpu ]]")


def test_one_rate_was_not_chosen(declared):
    one = [run for run in RUNS if run.rate == 0.1]
    declared.DESIGN = replace(DESIGN, runs=lambda record: one)
    shown = block()
    assert "<strong>Learning rates</strong>: 0.1<" in shown and "<table" not in shown


@pytest.mark.parametrize("name", facts.designed())
def test_no_table_shows_a_name_of_the_code(name):
    """In Chinese a cell of small Latin letters alone is a name of the code."""
    shown = facts.design(name, "zh", designs.block)
    assert re.findall(r"<t[dh]>[a-z_]+</t[dh]>", shown) == []


def test_a_table_of_one_unnamed_cell_has_no_head(declared):
    plain = [replace(run, cell=()) for run in RUNS]
    words = {"en": TEXTS, "zh": {k: v for k, v in ZH.items() if k in TEXTS}}
    declared.DESIGN = replace(DESIGN, runs=lambda record: plain, words=words)
    assert "<thead>" not in block() and "<td>Pre-Norm</td><td>0.2</td></tr>" in block()
