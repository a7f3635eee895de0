"""Names between [[ ]]: each kind is made with the page's language, or refused."""

from types import SimpleNamespace

import pytest

from scripts.site.data.facts import Names
from scripts.site.pages import macros
from scripts.site.reading.source import SourceError

KINDS = {
    "figures": "e",
    "designs": "e",
    "diagrams": "d",
    "explore": "x",
    "bets": "gradient",
    "playground": "screen",
    "lists": "glossary",
    "claims": "top",
    "atlas": "table",
    "interview": "sheet",
    "mock": "quiz",
    "cite": "one",
}
LABELS = {
    "record": "Record",
    "alternative": "In words",
    "rerun": "Again",
    "rerun_how": "Run <code>it</code>.",
}


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """One experiment with records of two machines, one diagram, one live figure."""

    def maker(kind):
        return lambda name, language: f"<{kind} {name} {language}>"

    records = [SimpleNamespace(machine=machine) for machine in ("m", "n")]
    monkeypatch.setattr(
        macros, "recorded", lambda: {"e": records, "alone": records[:1]}
    )
    monkeypatch.setattr(macros, "designed", lambda: ["e"])
    monkeypatch.setattr(
        macros, "facts", lambda: Names("f", {"e": Names("g", {"a": 1})})
    )
    monkeypatch.setattr(macros, "cite", lambda: Names("citation", {"one": 1}))
    monkeypatch.setattr(macros, "words", lambda record, language: dict(WORDS))
    monkeypatch.setattr(macros, "design", lambda name, of, form: (name, of, form))
    monkeypatch.setattr(macros.diagram, "names", lambda: ["d"])
    monkeypatch.setattr(macros.diagram, "load", lambda _: SimpleNamespace(WORDS=TEXTS))
    monkeypatch.setattr(macros.explore, "names", lambda: ["x"])
    monkeypatch.setattr(macros.explore, "page", lambda *of: of)
    monkeypatch.setattr(macros.gradient_bet, "make", lambda *of: of)
    monkeypatch.setattr(macros.playground, "make", lambda *of: of)
    monkeypatch.setattr(macros.reference_lists, "NAMES", ("glossary",))
    monkeypatch.setattr(macros.reference_lists, "make", maker("lists"))
    monkeypatch.setattr(macros.claims, "names", lambda: ["top"])
    monkeypatch.setattr(macros.claims, "make", maker("claims"))
    monkeypatch.setattr(macros.atlas, "NAMES", ("table",))
    monkeypatch.setattr(macros.atlas, "make", maker("atlas"))
    monkeypatch.setattr(macros.interview_pages, "names", lambda: ["sheet"])
    monkeypatch.setattr(macros.interview_pages, "make", maker("interview"))
    monkeypatch.setattr(macros.mock, "make", maker("mock"))

    def figure_path(name, machine, language):
        return tmp_path / f"{name}-{machine}.{language}.svg"

    monkeypatch.setattr(macros.figures, "figure_path", figure_path)
    monkeypatch.setattr(
        macros.diagram, "path", lambda n, of: tmp_path / f"{n}.{of}.svg"
    )
    for stem in ("e-m", "e-n", "alone-m", "d"):
        for language in ("zh", "en"):
            (tmp_path / f"{stem}.{language}.svg").write_text("<svg></svg>")
    return tmp_path


WORDS = {"caption": "A < B", "alt": 'High & "low"'}
TEXTS = {"en": WORDS, "zh": {"caption": "甲", "alt": "乙"}}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_names(kind):
    macros.check_names(f"a [[ {kind}.{KINDS[kind]} ]] b [[{kind}.{KINDS[kind]}]]")
    for bad in (f"{kind}.none", kind, f"{kind}.{KINDS[kind]}.more.of"):
        if kind in ("figures", "designs") and bad.endswith("of"):
            continue
        with pytest.raises(SourceError, match="unknown"):
            macros.check_names(f"[[ {kind}.{KINDS[kind]} ]] [[ {bad} ]]")


def test_a_fact_is_a_name_and_a_group_is_none():
    macros.check_names("[[ facts.e.a ]]")
    for bad, says in (
        ("facts.e", r"\[\[ facts\.e \]\] is a group of names, not one"),
        ("facts.e.b", "unknown g 'b'; known: a"),
        ("facts.e.a.b", r"unknown name \[\[ facts\.e\.a\.b \]\]"),
        ("else.e", r"unknown name \[\[ else\.e \]\]"),
        ("figures.none.e", "unknown figure 'none'"),
        ("designs.none.e", "unknown design 'none'"),
    ):
        with pytest.raises(SourceError, match=says):
            macros.check_names(f"[[ facts.e.a ]] [[ {bad} ]]")


def test_what_is_no_name_has_its_line():
    for text, line in (("[[ 1 + 2 ]]", 1), ("a\n\n[% if %]", 3), ("\n[=# x", 2)):
        with pytest.raises(SourceError, match=rf"^line {line}: '\["):
            macros.check_names(text)


def test_a_figure_that_was_not_drawn_is_named(small):
    for language in ("zh", "en"):
        macros.check_drawn(language)
    (small / "e-n.zh.svg").unlink()
    macros.check_drawn("en")
    with pytest.raises(SourceError, match=r"no figure .*n\.zh\.svg; run: make render"):
        macros.check_drawn("zh")
    (small / "d.en.svg").unlink()
    with pytest.raises(SourceError, match=r"no figure .*d\.en\.svg"):
        macros.check_drawn("en")


def test_a_figure_holds_picture_caption_words_and_record():
    record = SimpleNamespace(machine="m")
    assert macros.figure("e", record, "en", LABELS) == (
        '<figure class="measured" data-search-exclude id="e-m">\n'
        '<svg aria-label="A &lt; B"></svg>\n'
        '<figcaption>A &lt; B <a href="{root}records/m/e.json">Record: m</a>'
        "</figcaption>\n"
        "<details><summary>In words</summary>"
        "<p>High &amp; &quot;low&quot;</p></details>\n"
        "<details><summary>Again</summary><p>Run <code>it</code>.</p>"
        "<p><code>make reproduce NAME=e</code></p></details>\n"
        "</figure>"
    )


def test_a_drawing_holds_picture_caption_and_words():
    assert macros.drawing("d", "zh", LABELS) == (
        '<figure class="measured" data-search-exclude id="d">\n'
        '<svg aria-label="甲"></svg>\n'
        "<figcaption>甲</figcaption>\n"
        "<details><summary>In words</summary><p>乙</p></details>\n"
        "</figure>"
    )


@pytest.fixture
def environment():
    page = SimpleNamespace(url="a/b/")
    conf = {"extra": {"words": LABELS}, "theme": {"language": "en"}}
    made = SimpleNamespace(variables={}, conf=conf, page=page)
    macros.define_env(made)
    return made


def test_macros_write_in_the_language_and_from_the_page(environment):
    of = environment.variables
    assert set(of) == {*KINDS, "facts"}
    for kind in ("lists", "claims", "atlas", "interview", "mock"):
        assert of[kind].a_b == f"<{kind} a_b en>"
    assert of["explore"].x == ("x", "en", "../../")
    assert of["bets"].gradient == ("gradient", "en", "../../")
    assert of["playground"].screen == ("screen", "en", "../../")
    assert of["designs"].e == ("e", "en", macros.designs.block)
    assert of["diagrams"].d == macros.drawing("d", "en", LABELS)
    assert (of["facts"].e.a, of["cite"].one) == (1, 1)


def test_figures_of_several_machines_stand_together(environment):
    figures = environment.variables["figures"]
    alone = figures.alone
    assert 'href="../../records/m/alone.json"' in alone and "{root}" not in alone
    assert alone.startswith("<figure") and alone.endswith("</figure>")
    both = figures.e
    assert both.startswith('<div class="machines">\n\n<figure')
    assert both.endswith("</figure>\n\n</div>") and both.count("<figure ") == 2
    environment.page.url = "a/"
    assert 'href="../records/n/e.json"' in environment.variables["figures"].e


def test_unknown_figures_and_diagrams_are_one_line(environment):
    with pytest.raises(SourceError, match="unknown figure 'none': no experiment with"):
        _ = environment.variables["figures"].none
    with pytest.raises(SourceError, match="unknown diagram 'none'"):
        _ = environment.variables["diagrams"].none
