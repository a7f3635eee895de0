"""The mock interview and the mixed round, of a bank of one question and one item."""

from types import SimpleNamespace

import pytest

from scripts.site.questions import interview, interview_pages, mock
from scripts.site.reading.source import SourceError


def said(text):
    return {"en": f"{text}.", "zh": f"{text}。"}


ROW = {
    "id": "a-question",
    "level": "engineer",
    "question": said("Asked"),
    "short": said("Short"),
    "weak": {"said": said("Weak"), "wrong": said("Wrong")},
    "follow_up": {"question": said("Next"), "answer": said("Last")},
}


@pytest.fixture(autouse=True)
def bank(monkeypatch):
    rows = {"attention": [ROW], "kernels": [ROW | {"id": "b"}]}
    monkeypatch.setattr(interview, "questions", lambda group: rows.get(group, []))
    monkeypatch.setattr(interview, "items", lambda: [("kernels", "an item")])
    monkeypatch.setattr(interview_pages, "subject", lambda group, of: f"{group} {of}")

    def item(group, row, language, linked=False):
        return f"<{group} {row} {language} {linked}>"

    monkeypatch.setattr(interview_pages, "item", item)
    return SimpleNamespace(rows=rows)


def test_the_interview_is_groups_of_folded_questions():
    found = mock.make("interview", "en").split("\n\n")
    assert found[0] == "<div><mock-interview></mock-interview></div>"
    levels = 'data-screening="screening" data-engineer="engineer"'
    assert found[1] == (
        f'<div class="mock-list" data-search-exclude {levels} '
        'data-researcher="researcher" markdown>'
    )
    assert found[2:17] == [
        '<section aria-label="attention en" markdown>',
        "**attention en**",
        '<details data-level="engineer" markdown>',
        '<summary markdown="span">Asked.</summary>',
        "<section markdown>",
        "Short.",
        "</section>",
        '**A weak answer:** "Weak." Wrong.',
        "[Full answer](attention.md#a-question)",
        "<details markdown>",
        '<summary markdown="span">Follow-up: Next.</summary>',
        "Last.",
        "</details>",
        "</details>",
        "</section>",
    ]
    assert found[17] == '<section aria-label="kernels en" markdown>'
    assert found[-1] == "</div>"


def test_the_round_is_hidden_until_a_script_draws():
    found = mock.make("quiz", "zh").split("\n\n")
    assert found[0] == "<div><quiz-round></quiz-round></div>"
    assert found[1].startswith('<section class="quiz-list" data-search-exclude data-')
    assert 'data-engineer="工程师"' in found[1]
    assert found[1].endswith(" hidden markdown>")
    assert found[2:] == ["<kernels an item zh True>", "</section>"]


def test_programs_read_a_list_of_questions():
    assert mock.text("interview", "zh") == "- Asked。\n- Asked。"
    assert mock.text("quiz", "zh") == ""
    with pytest.raises(SourceError, match="'x'; known: interview, quiz"):
        mock.make("x", "en")
