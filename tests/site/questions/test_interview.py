"""The bank's form: what is out of form in a question or an item is named."""

from copy import deepcopy

import pytest
import yaml

from scripts.site.questions import interview


def said(text):
    return {"en": f"{text}.", "zh": f"{text}。"}


QUESTION = {
    "id": "a-question",
    "level": "screening",
    "evidence": ["a.md#b", "cite:one", "claim:a#b", "record:c"],
    "question": said("Q"),
    "short": said("S"),
    "answer": said("A"),
    "weak": {"said": said("W"), "wrong": said("X")},
    "follow_up": {"question": {"en": "F?", "zh": "问？"}, "answer": said("G")},
}
ITEM = {
    "id": "an-item",
    "level": "researcher",
    "question": said("Q"),
    "options": {n: {"text": said(n), "why": said(n)} for n in ("a", "b", "c-d")},
    "answer": "b",
    "evidence": ["a.md"],
}


def changed(row, path, value):
    made = deepcopy(row)
    part = made
    *above, last = path.split("/")
    for key in above:
        part = part[key]
    part[last] = value
    return made


QUOTED = {"en": "W.", "zh": "“甲。”"}


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("top", 1, "top and opener come together"),
        ("asked", ["https://a.org"], None),
        ("asked", ["a.org"], "asked: a.org is no address"),
        ("more", 1, "unknown field more"),
        ("level", "chief", "level is none of screening, engineer, researcher"),
        ("question", "Q", "question is not one text a language"),
        ("short", {"en": "S.", "zh": ""}, "short is empty or no text"),
        ("answer", 3, "answer is not one text a language"),
        ("weak", "W", "weak is not said and wrong"),
        ("weak", {"said": said("W")}, "weak is not said and wrong"),
        ("follow_up/answer", "G", "follow_up.answer is not one text a language"),
        ("weak/said", QUOTED, "weak.said stands in quotation marks (zh)"),
        ("weak/said/en", '"W."', "weak.said stands in quotation marks (en)"),
        ("weak/said/en", 'He says "W".', None),
        ("weak/wrong/en", "Why? Because.", None),
        ("follow_up/answer/en", "Why? Because.", "follow_up.answer begins with a que"),
        ("follow_up/answer/zh", "为什么？因为。", "follow_up.answer begins with a que"),
        ("follow_up/answer/en", "Since a. Why?", None),
        ("evidence", "a.md", "evidence is not a list of at least one"),
        ("evidence", [], "evidence is not a list of at least one"),
        ("evidence", ["page:a"], "evidence 'page:a' is no page's section, claim:"),
        ("evidence", ["cite"], "evidence 'cite' is no page's section"),
    ],
)
def test_questions(path, value, says):
    found = interview.problem_of_question(changed(QUESTION, path, value))
    assert (found or "").startswith(says or "") and bool(found) == bool(says)


OPTION = {"text": said("e"), "why": said("e")}
TWO = {name: OPTION for name in "ab"}


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("check", True, None),
        ("top", 1, "unknown field top"),
        ("level", "chief", "level is none of"),
        ("question", "Q", "question is not one text a language"),
        ("options", TWO, "has not three to five options"),
        ("options", TWO | {n: OPTION for n in "cdef"}, "has not three to five options"),
        ("options", TWO | {n: OPTION for n in "cde"}, None),
        ("options", [1, 2, 3], "has not three to five options"),
        ("options/E", OPTION, "option E is not lower-case words joined by hyphens"),
        ("options/a", {"text": said("a")}, "option a has not text and why"),
        ("options/a", "a", "option a has not text and why"),
        ("options/a/text", "a", "option a: text is not one text a language"),
        ("options/a/why", "a", "option a: why is not one text a language"),
        ("answer", "z", "answer is none of the options"),
        ("answer", ["b"], "answer is none of the options"),
        ("evidence", None, "evidence is not a list of at least one"),
    ],
)
def test_items(path, value, says):
    found = interview.problem_of_item(changed(ITEM, path, value))
    assert (found or "").startswith(says or "") and bool(found) == bool(says)


def test_every_group_has_questions_items_and_keys():
    for group in interview.GROUPS:
        assert interview.questions(group) and interview.quiz(group)
    assert list(interview.KEYS.glob("quiz_*.py"))


def test_groups_are_read_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(interview, "QUESTIONS", tmp_path)
    monkeypatch.setattr(interview, "QUIZ", tmp_path / "quiz")
    (tmp_path / "quiz").mkdir()
    assert interview.bank() == interview.items() == []
    for group in ("numerics", "attention"):
        (tmp_path / f"{group}.yml").write_text(yaml.safe_dump([QUESTION]))
    (tmp_path / "quiz" / "coding.yml").write_text(yaml.safe_dump([ITEM]))
    assert interview.bank() == [("attention", QUESTION), ("numerics", QUESTION)]
    assert interview.items() == [("coding", ITEM)]
    assert interview.quiz("numerics") == []


def test_all_that_a_question_says():
    assert interview.texts(QUESTION) == {
        "question": said("Q"),
        "short": said("S"),
        "answer": said("A"),
        "weak.said": said("W"),
        "weak.wrong": said("X"),
        "follow_up.question": {"en": "F?", "zh": "问？"},
        "follow_up.answer": said("G"),
    }
