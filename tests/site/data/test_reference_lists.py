"""Lists of a small site: bibliography, glossary, rejected variants, contents."""

from types import SimpleNamespace

import pytest

from scripts.site.data import citations, known_wrong, reference_lists
from scripts.site.reading.source import SourceError

NAV = """nav:
  - Home: index.md
  - Norms:
      - One:
          - First: norms/a.md
          - Deep:
              - Two: norms/b-c.md
      - Other: norms/b-c.md
  - Practice:
      - One: x.md
"""
SECTIONS = """norms/a.md: { en: first, zh: 一 }
norms/b-c.md: { en: second, zh: 二 }
x.md: { en: third, zh: 三 }
"""


def reference(key, name, year, url, where=""):
    return SimpleNamespace(
        key=key, names=(name,), year=year, title=key, url=url, where=where, entry=key
    )


@pytest.fixture(autouse=True)
def site(tmp_path, monkeypatch):
    def put(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    for language in ("en", "zh"):
        put(f"docs/{language}/mkdocs.yml", NAV.replace("Norms", f"Norms {language}"))
        for name, title in (
            ("index", "Home"),
            ("norms/a", "A page"),
            ("norms/b-c", "B: page"),
            ("x", "X page"),
        ):
            text = "[[ cite.two ]] [[ cite.one ]] [[cite.two]]" if "a" in name else ""
            page = f'---\ntitle: "{title} {language}"\n---\n{text}'
            put(f"docs/{language}/pages/{name}.md", page)
    put("docs/data/glossary.yml", GLOSSARY)
    put("docs/data/sections.yml", SECTIONS)
    put("docs/data/rejected/b_c.yml", "test_x: {one: {en: Bad., zh: 坏。}}\n")
    put(
        "docs/data/rejected/a.yml",
        "test_y: {one: {en: A., zh: 甲。}, two: {en: B., zh: 乙。}}\n"
        "reference.f: {three: {change: x + 1 => x, en: C., zh: 丙。}}\n",
    )
    put("snippets/a/reference.py", "def f(x):\n    return x + 1\n")
    monkeypatch.setattr(known_wrong, "SNIPPETS", tmp_path / "snippets")
    monkeypatch.setattr(reference_lists, "ROOT", tmp_path)
    monkeypatch.setattr(reference_lists, "DATA", tmp_path / "docs/data")
    monkeypatch.setattr(reference_lists, "REJECTED", tmp_path / "docs/data/rejected")
    terms = [{"en": "gain", "zh": "增益"}, {"en": "RMSNorm", "zh": "rmsnorm"}]
    monkeypatch.setattr(reference_lists, "terms", lambda: terms)
    found = [
        reference("two", "beta", 2020, "https://arxiv.org/2"),
        reference("one", "Alpha", 2021, "https://b.org", "A journal"),
        reference("zero", "alpha", 2020, "https://arxiv.org/0"),
        reference("code", "C", 2020, "https://github.com/a/b", "A journal"),
        reference("page", "D", 2020, "https://docs.org"),
    ]
    known = {each.key: each for each in found}
    monkeypatch.setattr(citations, "references", lambda: known)
    reference_lists.read_again()
    return put


GLOSSARY = """RMSNorm: {en: A norm., zh: 归一化。, page: norms/a.md#x}
gain: {en: A factor., zh: 系数。, page: x.md}
"""


def test_bibliography_is_papers_then_sources_with_who_cites_them():
    cited = "Cited on [A page en](../norms/a.md)"
    assert reference_lists.make("bibliography", "en").splitlines() == [
        "## Papers { #papers }",
        "",
        "- zero",
        f"- one {cited}",
        f"- two {cited}",
        "",
        "## Code, documentation and threads { #sources }",
        "",
        "- code",
        "- page",
    ]


def test_glossary_in_the_order_of_the_english():
    assert reference_lists.make("glossary", "en").splitlines() == [
        '- <span id="gain"></span>**gain** (增益): A factor. See [X page en](../x.md).',
        '- <span id="rmsnorm"></span>**RMSNorm**: A norm. '
        "See [A page en](../norms/a.md#x).",
    ]
    assert reference_lists.make("glossary", "zh").splitlines()[0] == (
        '- <span id="gain"></span>**增益**（gain）：系数。见 [X page zh](../x.md)。'
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bias: {en: A., zh: 甲。, page: x.md}\n", "'bias' is not in terms.yml"),
        ("gain: {en: A., zh: 甲。, page: y.md}\n", "gain: no page y.md"),
    ],
)
def test_a_term_that_leads_nowhere(text, says, site):
    site("docs/data/glossary.yml", text)
    with pytest.raises(SourceError, match=f"glossary.yml: {says}"):
        reference_lists.glossary("en")


def test_rejected_variants_in_reading_order_each_page_once():
    assert reference_lists.make("rejected_count", "en") == "4"
    assert reference_lists.make("rejected", "en").splitlines() == [
        '??? note "A page en (3)"',
        "",
        "    ## [A page en](../norms/a.md) { #a }",
        "",
        "    `a/test_y.py` (2)",
        "",
        "    - `one`: A.",
        "    - `two`: B.",
        "",
        "    `a/reference.py`, `f` (1)",
        "",
        "    - `three`: C.",
        "",
        "        ```{ .diff .no-copy }",
        "        - return x + 1",
        "        + return x",
        "        ```",
        "",
        "",
        '??? note "B: page en (1)"',
        "",
        "    ## [B: page en](../norms/b-c.md) { #b-c }",
        "",
        "    `b_c/test_x.py` (1)",
        "",
        "    - `one`: Bad.",
    ]


def test_contents_are_groups_of_sections_with_a_gloss(site):
    made = reference_lists.make("contents", "zh").splitlines()
    assert [line for line in made if line.startswith(("- ", "**"))] == [
        "**Norms zh**",
        "- [One](norms/a.md)<br>一",
        "- [Other](norms/b-c.md)<br>二",
        "**Practice**",
        "- [One](x.md)<br>三",
    ]
    site("docs/data/sections.yml", "norms/a.md: { en: first, zh: 一 }\n")
    with pytest.raises(SourceError, match=r"sections.yml: no gloss for norms/b-c.md"):
        reference_lists.make("contents", "zh")


def test_an_unknown_list():
    with pytest.raises(SourceError, match="'x'; known: bibliography, contents, glo"):
        reference_lists.make("x", "en")


def test_titles_are_read_again_when_a_build_begins(site):
    before = reference_lists.pages("en")
    assert before["x.md"] == "X page en" and next(iter(before)) == "index.md"
    site("docs/en/pages/y.md", "---\ntitle: Y\n---\n")
    assert reference_lists.pages("en") is before
    reference_lists.read_again()
    assert reference_lists.pages("en")["y.md"] == "Y"
    reference_lists.read_again()


def test_subjects_and_folded_links():
    assert reference_lists.subject("Claims: a: b") == "a: b"
    assert reference_lists.subject("说法：甲") == "甲"
    assert reference_lists.subject("Plain") == "Plain"
    assert reference_lists.append_folded("A\n\n", "T", []) == "A\n\n"
    assert reference_lists.append_folded("A\n\n", "T", ["x", "y"]) == (
        'A\n\n??? question "T (2)"\n\n    - x\n    - y\n'
    )
