"""The mock interview's list: every question once, and a way to its full answer."""

import re

import pytest
from markdown import Markdown
from material.plugins.search.plugin import Parser

from scripts.site.questions import interview, interview_pages, mock
from scripts.site.reading.source import LANGUAGES, SourceError


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_question_stands_once(language):
    made = mock.make("interview", language)
    links = re.findall(r"\]\(([\w-]+)\.md#([\w-]+)\)$", made, re.MULTILINE)
    assert links == [(group, row["id"]) for group, row in interview.bank()]
    assert made.count("<details") == made.count("</details>") == 2 * len(links)
    groups = len({group for group, _ in interview.bank()})
    assert made.count("<section") == made.count("</section>") == groups + len(links)
    assert "[[" not in re.sub(r"`[^`]*`", "", made)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_answer_of_a_follow_up_is_folded_behind_it(language):
    found = re.findall(
        r"\.md#[\w-]+\)\n\n<details markdown>\n\n"  # after the full answer's link
        r'<summary markdown="span">(.+)</summary>\n\n(.+)\n\n</details>\n\n</details>',
        mock.make("interview", language),
    )
    pairs = [
        interview_pages.pair(row, "follow_up", language) for _, row in interview.bank()
    ]
    label = mock.WORDS[language]["follow_up"]
    assert found == [(label + question, answer) for question, answer in pairs]


@pytest.mark.parametrize("language", LANGUAGES)
def test_as_text_it_is_the_questions(language):
    assert len(mock.text("interview", language).splitlines()) == len(interview.bank())


def test_unknown_name_is_one_line():
    with pytest.raises(
        SourceError, match="unknown list 'exam'; known: interview, quiz"
    ):
        mock.make("exam", "en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_round_has_each_item_once_without_its_code(language):
    made = mock.make("quiz", language)
    items = re.findall(r'<div class="quiz" id="([\w-]+)"', made)
    assert items == [row["id"] for _, row in interview.items()]
    links = re.findall(r"\]\((quiz-\w+)\.md#([\w-]+)\)\n", made)
    assert [name for _, name in links] == items
    pages = {
        page: interview_pages.quiz_page(page, language)
        for page in interview_pages.QUIZ_PAGES
    }
    assert all(f'id="{name}"' in pages[page] for page, name in links)
    assert "```" not in made and mock.text("quiz", language) == ""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", mock.NAMES)
def test_the_search_leaves_the_list_out(name, language):
    """It reads each question on its own page."""
    html = Markdown(
        extensions=["md_in_html", "pymdownx.details", "pymdownx.superfences"]
    )
    parser = Parser()
    parser.feed(html.convert(mock.make(name, language)))
    parser.close()
    assert not "".join("".join(section.text) for section in parser.data).strip()
