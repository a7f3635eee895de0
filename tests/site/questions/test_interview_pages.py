"""The interview's pages, of a bank of a few questions and items."""

from types import SimpleNamespace

import pytest

from scripts.site.data import citations, claims, reference_lists
from scripts.site.questions import interview, interview_pages
from scripts.site.questions.interview_pages import WORDS
from scripts.site.reading.source import SourceError


def said(text):
    return {"en": f"{text}.", "zh": f"{text}。"}


def question(name, level="engineer", **more):
    return {
        "id": name,
        "level": level,
        "evidence": ["b/a.md#here", "cite:one", "claim:scale#a-claim", "record:e"],
        "question": said(f"Q {name}"),
        "short": said("Short"),
        "answer": said("Full"),
        "weak": {"said": said("Weak"), "wrong": said("Wrong")},
        "follow_up": {"question": said("Next"), "answer": said("Last")},
    } | more


def item(name, answer="b", options="abc", **more):
    return {
        "id": name,
        "level": "screening",
        "question": said(f"Q {name}"),
        "options": {o: {"text": said(f"T{o}"), "why": said(f"W{o}")} for o in options},
        "answer": answer,
        "evidence": ["b/a.md"],
    } | more


TOP = {"top": 1, "opener": said("Open")}
BANK = {
    "attention": [question("one", **TOP), question("two", "screening", **TOP)],
    "kernels": [question("three", asked=["https://www.a.org/x"], **TOP)],
}
QUIZ = {
    "rms-norm": [item(f"i-{n}") for n in range(6)],
    "coding": [item("last", "e", "abcde")],
}
PAGES = {
    "b/a.md": "A page",
    **{f"interview/{group}.md": f"Interview: {group} x" for group in interview.GROUPS},
}


@pytest.fixture(autouse=True)
def bank(monkeypatch, tmp_path):
    monkeypatch.setattr(interview, "questions", lambda group: BANK.get(group, []))
    monkeypatch.setattr(interview, "quiz", lambda group: QUIZ.get(group, []))
    monkeypatch.setattr(interview, "KEYS", tmp_path)
    monkeypatch.setattr(reference_lists, "pages", lambda language: PAGES)
    paper = SimpleNamespace(authors="A", year=2020, title="T", url="https://t.org")
    monkeypatch.setattr(citations, "references", lambda: {"one": paper})
    monkeypatch.setattr(citations, "link", lambda text, url: f"[{text}]({url})")
    claim = {"id": "a-claim", "claim": said("Said")}
    monkeypatch.setattr(claims, "topics", lambda: ["scale"])
    monkeypatch.setattr(claims, "rows", lambda topic: [claim])
    found = [SimpleNamespace(machine=machine) for machine in ("m", "n")]
    monkeypatch.setattr(interview_pages, "recorded", lambda: {"e": found})
    folder = tmp_path / "docs/en/pages/b"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("---\ntitle: A\n---\n## Head { #here }\n")
    monkeypatch.setattr(interview_pages, "ROOT", tmp_path)


def test_a_question_is_folded_with_its_evidence():
    bar, _, found = interview_pages.make("kernels", "en").partition("\n\n")
    assert (
        '<button type="button" value="engineer" aria-pressed="false">engineer 1<' in bar
    )
    assert bar.endswith('aria-pressed="false">open all answers</button></div>')
    assert found == "\n\n".join(
        [
            '<div class="asked" data-level="engineer" data-in="forty public" markdown>',
            "## Q three. { #three }",
            '<span class="level">engineer</span>',
            '??? success "Answer"',
            "    **In one line**",
            "    Open.",
            "    **Short answer**",
            "    Short.",
            "    **In full**",
            "    Full.",
            "    **A weak answer**",
            '    "Weak." Wrong.',
            '    ??? question "The follow-up: Next."',
            "        Last.",
            "    **Evidence**",
            "    - [A page: Head](../b/a.md#here)\n"
            "    - A, 2020: [T](https://t.org)\n"
            "    - Claim: [Said](../claims/scale.md#a-claim)\n"
            "    - Record: [e, m](../records/m/e.json)\n"
            "    - Record: [e, n](../records/n/e.json)",
            "    **Found at**",
            "    [a.org](https://www.a.org/x)",
            "</div>",
        ]
    )
    assert interview_pages.questions("attention", "en").count('class="asked"') == 2


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("claim:scale#no", "q: no claim scale#no"),
        ("claim:no#a-claim", "q: no claim no#a-claim"),
        ("cite:no", "q: no citation no"),
        ("record:no", "q: no record of 'no'"),
        ("c.md", "q: no page c.md"),
        ("b/a.md#no", "q: b/a.md has no #no"),
    ],
)
def test_evidence_that_leads_nowhere(entry, says):
    with pytest.raises(SourceError) as caught:
        interview_pages.evidence(question("q", evidence=[entry]), "en")
    assert str(caught.value) == says


def test_groups_by_level_and_in_all():
    assert interview_pages.make("overview", "en") == (
        "- [attention x](attention.md): screening 1, engineer 1\n"
        "- [kernels x](kernels.md): engineer 1"
    )
    assert interview_pages.make("engineer", "zh") == (
        '??? note "2 题，1 题在公开题单里问过"\n\n'
        "    **attention x**\n\n    - [Q one。](attention.md#one)\n\n"
        "    **kernels x**\n\n    - [Q three。](kernels.md#three){ .public }"
    )
    assert interview_pages.make("asked", "en").startswith(
        '??? note "1 questions"\n\n    **kernels x**\n\n'
        "    - [Q three.](kernels.md#three): [a.org](https://www.a.org/x)\n\n"
        '<p class="only"><label><input type="checkbox" name="public"> In the'
    )
    assert interview_pages.make("researcher", "en") == ""
    counts = [interview_pages.make(n, "en") for n in ("count", "quiz_count")]
    assert counts == ["3", "7"]
    with pytest.raises(SourceError, match="unknown list of questions 'x'; known: co"):
        interview_pages.make("x", "en")


def test_the_sheet_takes_one_of_each_group_in_turn(monkeypatch):
    names = [row["id"] for _, row in interview_pages.chosen()]
    assert names == ["one", "two", "three"]  # in the site's order
    monkeypatch.setattr(interview_pages, "SHEET", 2)
    assert [row["id"] for _, row in interview_pages.chosen()] == ["one", "three"]
    assert interview_pages.make("sheet", "en") == (
        '<div class="sheet" markdown data-search-exclude>\n\n'
        "1. **[Q one.](attention.md#one)**\n\n    **Open**. Short.\n\n"
        "1. **[Q three.](kernels.md#three)**\n\n    **Open**. Short.\n\n</div>"
    )


def test_the_quiz_page_s_groups_and_scores():
    found = interview_pages.make("quiz", "en").splitlines()
    items = " ".join(f"i-{n}:b" for n in range(6))
    assert found == [
        "- [rms-norm x](quiz-methods.md#rms-norm): "
        f'<quiz-score data-items="{items}">6 items</quiz-score>',
        "- [coding x](quiz-practice.md#coding): "
        '<quiz-score data-items="last:e">1 items</quiz-score>',
        "",
        f'**Together**: <quiz-score data-items="{items} last:e" reset>'
        "7 items</quiz-score>",
    ]
    page = interview_pages.make("quiz_practice", "zh")
    bar, paper, rest = page.partition("<quiz-paper></quiz-paper></div>\n\n")
    assert bar.startswith(
        '<div><div class="filter" role="group" aria-label="按级别筛选"'
    )
    assert paper and rest.startswith("## coding x { #coding }")
    assert page.endswith('<quiz-score data-items="last:e" reset>1 题</quiz-score>')
    assert page.count('class="quiz"') == 1


def test_right_letters_come_in_turn():
    places = {}
    for row in QUIZ["rms-norm"]:
        letters = interview_pages.shuffled(row)
        assert sorted(letters.values()) == ["a", "b", "c"]
        assert list(letters) == ["A", "B", "C"]
        right = next(x for x, name in letters.items() if name == row["answer"])
        places[right] = places.get(right, 0) + 1
    assert places == {"A": 2, "B": 2, "C": 2}
    orders = {tuple(interview_pages.shuffled(r).values()) for r in QUIZ["rms-norm"]}
    others = {"".join(order).replace("b", "") for order in orders}
    assert others == {"ac", "ca"}


def test_an_item_is_a_form_with_its_key_folded(tmp_path):
    row = QUIZ["rms-norm"][0]
    letters = interview_pages.shuffled(row)
    right = next(x for x, name in letters.items() if name == "b")
    asked = [
        f'- <label><input type="radio" name="choice" value="{name}"> {x}. T{name}.'
        "</label>"
        for x, name in letters.items()
    ]
    why = [f"    - **{x}**: W{name}." for x, name in letters.items()]
    head = [
        f'<div class="quiz" id="i-0" data-level="screening" data-answer="b" '
        f'data-letter="{right}" markdown>',
        '<span class="level">screening</span>',
        "<form markdown>\n<fieldset markdown>",
        "<legend markdown>Q i-0.</legend>",
        "\n".join(asked),
        "</fieldset>\n</form>",
        '??? success "Answer and why"',
        f"    {right} is right.",
        "\n".join(why),
    ]
    tail = ["    **Evidence**", "    - [A page](../b/a.md)", "</div>"]
    assert interview_pages.item("rms-norm", row, "en") == "\n\n".join(head + tail)
    linked = interview_pages.item("rms-norm", row, "en", linked=True)
    assert '<span class="level">screening · rms-norm x</span>' in linked
    link = "    [Evidence and check](quiz-methods.md#i-0)\n\n</div>"
    assert linked.endswith(link)
    key = "import a\n\n\ndef i_0():\n    return a\n\n\ndef i_1():\n    return 1\n"
    (tmp_path / "quiz_rms_norm.py").write_text(key)
    checked = interview_pages.item("rms-norm", row | {"check": True}, "en")
    code = "        ```python\n        def i_0():\n            return a\n        ```"
    assert checked.endswith(f'    ??? note "The check"\n\n{code}\n\n</div>')


def test_a_page_lists_the_questions_that_it_answers():
    found = interview_pages.append_links("Text", "b/a.md", "zh").splitlines()
    assert found[2] == f'??? question "{WORDS["zh"]["settled"]} (3)"'
    assert found[4] == "    - [Q one。](../interview/attention.md#one)（工程师）"
    assert interview_pages.append_links("Text", "a.md", "en") == "Text"


def test_a_bad_name_anywhere_is_found_in_its_file(monkeypatch):
    bad = item("i-9")
    bad["options"]["c"]["why"] = {"en": "[[ no ]]", "zh": "甲"}
    monkeypatch.setattr(interview, "items", lambda: [("numerics", bad)])
    with pytest.raises(SourceError, match=r"^numerics\.yml: i-9: unknown name"):
        interview_pages.check("en")
    weak = question("q", weak={"said": said("[[ no ]]"), "wrong": said("W")})
    monkeypatch.setattr(interview, "bank", lambda: [("kernels", weak)])
    with pytest.raises(SourceError, match=r"^kernels\.yml: q: unknown name"):
        interview_pages.check("en")


def test_a_sound_bank_passes():
    interview_pages.check("en")
    assert set(interview_pages.names()) >= {"rms_norm", "quiz_methods", "sheet"}
    with pytest.raises(SourceError, match=r"no page interview/none\.md for the quest"):
        interview_pages.subject("none", "en")
