"""The mock interview: every question of the bank as a folded block of the page.

The element <mock-interview> (assets/mock.js) draws from these blocks and asks them one
by one, each with its follow-up, a folded block inside. Without scripts they are a list
to read.
"""

from scripts.site import asked, interview
from scripts.site.interview import GROUPS, LEVELS
from scripts.site.source import SourceError
from scripts.site.written import markdown

NAMES = ("interview",)
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
    """``mock.interview``: the element and its questions."""
    if name not in NAMES:
        raise SourceError(f"unknown list {name!r}; known: {', '.join(NAMES)}")
    words = asked.WORDS[language]
    labels = " ".join(f'data-{level}="{words[level]}"' for level in LEVELS)
    groups = [_group(group, language) for group in GROUPS if interview.questions(group)]
    return "\n\n".join(
        [
            "<div><mock-interview></mock-interview></div>",
            f'<div class="mock-list" data-search-exclude {labels} markdown>',
            *groups,
            "</div>",
        ]
    )


def text(language: str) -> str:
    """The questions as a plain list, for readers that are programs."""
    questions = (row["question"][language] for _, row in interview.bank())
    return "\n".join(f"- {markdown(question)}" for question in questions)


def _group(group: str, language: str) -> str:
    title = asked.subject(group, language)
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
    words = WORDS[language]
    next_question, next_answer = asked.pair(row, "follow_up", language)
    return "\n\n".join(
        [
            f'<details data-level="{row["level"]}" markdown>',
            f'<summary markdown="span">{markdown(row["question"][language])}</summary>',
            markdown(row["short"][language]),
            words["weak"] + asked.weak(row, language),
            f"[{words['full']}]({group}.md#{row['id']})",
            "<details markdown>",
            f'<summary markdown="span">{words["follow_up"]}{next_question}</summary>',
            next_answer,
            "</details>",
            "</details>",
        ]
    )
