"""Lists that scripts draw from: the mock interview, and the mixed round of the quiz.

For the interview every question of the bank is a folded block of the page. The element
<mock-interview> (assets/mock.js) asks them one by one, each with its follow-up, a
folded block inside. Without scripts they are a list to read. The items of <quiz-round>
(assets/quiz.js) stand on the quiz's pages as well; without scripts they stay hidden.
"""

from scripts.site.questions import interview, interview_pages
from scripts.site.questions.interview import GROUPS, LEVELS
from scripts.site.questions.texts import markdown
from scripts.site.reading.source import SourceError

NAMES = ("interview", "quiz")
WORDS = {
    "en": {
        "weak": "**A weak answer:** ",
        "follow_up": "Follow-up: ",
        "full": "Full answer",
    },
    "zh": {
        "weak": "**较差的回答**：",
        "follow_up": "追问：",
        "full": "完整回答",
    },
}


def make(name: str, language: str) -> str:
    """``mock.interview``, ``mock.quiz``: the element and what it draws from."""
    if name not in NAMES:
        raise SourceError(f"unknown list {name!r}; known: {', '.join(NAMES)}")
    words = interview_pages.WORDS[language]
    labels = " ".join(f'data-{level}="{words[level]}"' for level in LEVELS)
    if name == "quiz":
        element, kind, tag = "quiz-round", "quiz-list", "section"
        labels += " hidden"
        shown = [
            interview_pages.item(*pair, language, linked=True)
            for pair in interview.items()
        ]
    else:
        element, kind, tag = "mock-interview", "mock-list", "div"
        groups = (group for group in GROUPS if interview.questions(group))
        shown = [_group(group, language) for group in groups]
    # The search takes up again after the first inner element with the same tag.
    return "\n\n".join(
        [
            f"<div><{element}></{element}></div>",
            f'<{tag} class="{kind}" data-search-exclude {labels} markdown>',
            *shown,
            f"</{tag}>",
        ]
    )


def text(name: str, language: str) -> str:
    """The questions as a plain list, for readers that are programs.

    The quiz's items stand on their own pages.
    """
    if name == "quiz":
        return ""
    questions = (row["question"][language] for _, row in interview.bank())
    return "\n".join(f"- {markdown(question)}" for question in questions)


def _group(group: str, language: str) -> str:
    title = interview_pages.subject(group, language)
    rows = interview.questions(group)
    return "\n\n".join(
        [
            f'<section aria-label="{title}" markdown>',
            f"**{title}**",
            *(_question(group, row, language) for row in rows),
            "</section>",
        ]
    )


def _question(group: str, row: dict, language: str) -> str:
    words, within = WORDS[language], interview_pages.within(row)
    next_question, next_answer = interview_pages.pair(row, "follow_up", language)
    return "\n\n".join(
        [
            f'<details data-level="{row["level"]}"{within} markdown>',
            f'<summary markdown="span">{markdown(row["question"][language])}</summary>',
            f"<section markdown>\n\n{markdown(row['short'][language])}\n\n</section>",
            words["weak"] + interview_pages.weak(row, language),
            f"[{words['full']}]({group}.md#{row['id']})",
            "<details markdown>",
            f'<summary markdown="span">{words["follow_up"]}{next_question}</summary>',
            next_answer,
            "</details>",
            "</details>",
        ]
    )
