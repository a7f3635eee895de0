"""Flashcards: the question bank and the quiz as an Anki deck, one a language.

A question makes three short cards: it and its short answer, its follow-up and that
one's answer, a weak answer and what is wrong with it. A quiz item makes one: its
options, the right one and why. A card's id comes from its question's id, so that a new
deck updates the cards a reader has and keeps what they learned. The same sources give
the same bytes. A table of fronts and backs is for programs other than Anki.
"""

import itertools
import sqlite3
import subprocess
from functools import cache

from mkdocs.structure.files import File

from scripts.site.pages import page_parts
from scripts.site.publish.archive import zipped
from scripts.site.questions import interview, interview_pages
from scripts.site.questions.texts import html, markdown
from scripts.site.reading.source import ROOT, last_changed

INDEX = "interview/index.md"  # the page that offers the deck
URI = "interview/norms-measured.apkg"
TABLE = "interview/norms-measured.tsv"
IDS = {"zh": 1763700000001, "en": 1763700000002}  # never change: Anki knows them
# Neither do these, nor the template's name: Anki would keep a reader's old cards.
FIELDS = ("Question", "Short", "Answer", "Weak", "FollowUp", "Evidence")
LABELS = ("Group", "Level")
QUIZ_IDS = {"zh": 1763700000003, "en": 1763700000004}  # the same holds of these
QUIZ_FIELDS = ("Question", "Options", "Right", "Others", "Evidence")
KINDS = ("question", "follow-up", "weak")  # of cards of a question
QUIZ = "quiz"  # the kind of an item's card
WORDS = {
    "en": {
        "name": "Norms, Measured: interview",
        "about": "Questions on normalization in language models",
        "from": ", from {url}",
        "answer": "In full",
        "weak": "A weak answer: what is wrong with it?",
        "follow_up": "The follow-up",
        "page": "The question on the site, under {subject}",
        "quiz": "Norms, Measured: quiz",
        "others": "The other options",
        "item": "The item on the site, with its check, under {subject}",
        "space": " ",
    },
    "zh": {
        "name": "归一化实测：面试",
        "about": "大语言模型归一化的面试题",
        "from": "，出自 {url}",
        "answer": "完整回答",
        "weak": "较差的回答：错在哪里？",
        "follow_up": "追问",
        "page": "网站上的这道题，在“{subject}”一组",
        "quiz": "归一化实测：测验",
        "others": "其他选项",
        "item": "网站上的这道题和核对代码，在“{subject}”一组",
        "space": "",
    },
}
# What a card asks is in bold. Without an answer in full it is no question's card; one
# that a reader has changed keeps the older fields, all of them filled.
FRONT = """\
<main lang="{language}">
<p class="where">{{{{Group}}}} · {{{{Level}}}}</p>
<div class="question">{{{{Question}}}}</div>
{{{{^Answer}}}}
{{{{#FollowUp}}}}<h2>{follow_up}</h2><div class="question">{{{{FollowUp}}}}</div>{{{{/FollowUp}}}}
{{{{#Weak}}}}<h2>{weak}</h2><div class="question">{{{{Weak}}}}</div>{{{{/Weak}}}}
{{{{/Answer}}}}
</main>"""  # noqa: E501
BACK = """\
{{{{FrontSide}}}}
<hr id="answer">
<main lang="{language}">
{{{{Short}}}}
{{{{#Answer}}}}<details><summary>{answer}</summary>{{{{Answer}}}}</details>{{{{/Answer}}}}
<div class="where">{{{{Evidence}}}}</div>
</main>"""
QUIZ_FRONT = """\
<main lang="{language}">
<p class="where">{{{{Group}}}} · {{{{Level}}}}</p>
<div class="question stem">{{{{Question}}}}</div>
{{{{Options}}}}
</main>"""
QUIZ_BACK = """\
{{{{FrontSide}}}}
<hr id="answer">
<main lang="{language}">
{{{{Right}}}}
<details><summary>{others}</summary>{{{{Others}}}}</details>
<div class="where">{{{{Evidence}}}}</div>
</main>"""
# No colours: Anki's own follow its day and night.
STYLE = """\
.card { font: 1.1rem/1.6 system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans SC", sans-serif; text-align: left; }
main { display: block; max-width: 40rem; margin: 0 auto; padding: 0 .5rem; overflow-wrap: anywhere; }
.where { font-size: .8em; opacity: .75; }
.question:is(:last-child, .stem) { font-size: 1.15em; font-weight: 600; }
h2, summary { font-size: 1em; font-weight: 400; opacity: .75; }
h2 { margin: 1.2em 0 0; }
summary { cursor: pointer; }
code { font-size: .9em; background: #8883; border-radius: .2em; padding: .1em .25em; }
div.arithmatex { overflow-x: auto; }
ul, ol { padding-left: 1.3em; }
"""  # noqa: E501


def add(files, config) -> None:
    """Publish the deck of a language beside the page that offers it."""
    language = config.theme["language"]
    if files.get_file_from_path(INDEX):
        stamps = _stamps()
        content = _package(language, config.site_url or "/", moment(), stamps)
        files.append(File.generated(config, URI, content=content))
        files.append(File.generated(config, TABLE, content=_table(language, stamps)))


def _stamps() -> tuple:
    """What docs/data holds; a changed file is a changed stamp."""
    return last_changed((ROOT / "docs" / "data").rglob("*.*"))


@cache
def _package(language: str, site_url: str, moment: int, stamps: tuple) -> bytes:
    return package(language, site_url, moment)


@cache
def _table(language: str, stamps: tuple) -> str:
    return table(language)


def moment() -> int:
    """When the project was last changed: Anki keeps the newer of two cards."""
    git = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0 and done.stdout.strip():
        return int(done.stdout)
    files = interview.QUESTIONS.glob("*.yml")  # a copy of the tree without .git
    return int(max((file.stat().st_mtime for file in files), default=0))


def package(language: str, site_url: str, moment: int) -> bytes:
    """The deck of a language as an .apkg file."""
    from genanki import Package

    with sqlite3.connect(":memory:") as collection:
        ids = itertools.count(IDS[language])
        Package(deck(language, site_url)).write_to_db(collection.cursor(), moment, ids)
        collection.commit()
        stored = {"collection.anki2": collection.serialize(), "media": b"{}"}
    return zipped(stored)


def deck(language: str, site_url: str):
    from genanki import Deck, Model, Note, guid_for

    words = WORDS[language]

    def model(number: int, name: str, fields: tuple, front: str, back: str):
        """A note type with one card; the template's name never changes either."""
        sides = [side.format(language=language, **words) for side in (front, back)]
        template = dict(
            zip(("name", "qfmt", "afmt"), ("question", *sides), strict=True)
        )
        names = [{"name": name} for name in fields + LABELS]
        return Model(number, name, fields=names, templates=[template], css=STYLE)

    of_bank = model(IDS[language], words["name"], FIELDS, FRONT, BACK)
    of_quiz = model(
        QUIZ_IDS[language], words["quiz"], QUIZ_FIELDS, QUIZ_FRONT, QUIZ_BACK
    )
    source = (
        words["from"].format(url=site_url) if page_parts.published(site_url) else ""
    )
    made = Deck(IDS[language], words["name"], words["about"] + source)
    on_the_sheet = {row["id"] for _, row in interview_pages.chosen()}
    for place, (group, row, kind) in enumerate(cards()):
        # A question's card is as old as the deck: its id does not name its kind.
        rest = () if kind == "question" else (kind,)
        tags = _tags(group, row, kind)
        if kind == QUIZ:
            type_, said = of_quiz, quiz_fields(group, row, language, site_url)
        else:
            type_, said = of_bank, fields(group, row, kind, language, site_url)
            tags += ["norms::sheet"] * (row["id"] in on_the_sheet)
        made.add_note(
            Note(
                type_,
                said,
                tags=tags,
                guid=guid_for("norms-measured", language, row["id"], *rest),
                due=place,
            )
        )
    return made


def cards():
    """(group, row, kind) of every card, in the order in which Anki shows new ones."""
    yield from ((*pair, kind) for pair in interview.bank() for kind in KINDS)
    yield from ((*pair, QUIZ) for pair in interview.items())


def _tags(group: str, row: dict, kind: str) -> list[str]:
    return [f"norms::{tag}" for tag in (group, row["level"], kind)]


def fields(group: str, row: dict, kind: str, language: str, site_url: str) -> list[str]:
    """What a card says, as HTML, in the order of FIELDS and LABELS."""
    subject = interview_pages.subject(group, language)
    page = WORDS[language]["page"].format(subject=subject)
    said = dict.fromkeys(FIELDS, "")
    said["Question"] = markdown(row["question"][language])
    said["Evidence"] = f"- [{page}]({group}.md#{row['id']})"
    if kind == "question":
        said["Short"] = markdown(row["short"][language])
        said["Answer"] = markdown(row["answer"][language])
        said["Evidence"] += f"\n{interview_pages.evidence(row, language)}"
    elif kind == "follow-up":
        said["FollowUp"], said["Short"] = interview_pages.pair(
            row, "follow_up", language
        )
    else:
        said["Weak"], said["Short"] = interview_pages.pair(row, "weak", language)
        said["Weak"] = interview_pages.WORDS[language]["quoted"].format(said["Weak"])
    evidence = page_parts.absolute_links(said["Evidence"], INDEX, site_url)
    said["Evidence"] = page_parts.lasting(evidence, site_url)
    shown = [html(said[name]) for name in FIELDS]
    return [*shown, subject, interview_pages.WORDS[language][row["level"]]]


def quiz_fields(group: str, row: dict, language: str, site_url: str) -> list[str]:
    """What an item's card says, as HTML, in the order of QUIZ_FIELDS and LABELS."""
    words, letters = WORDS[language], interview_pages.shuffled(row)
    right = next(key for key, name in letters.items() if name == row["answer"])
    text, why = (
        {
            k: markdown(row["options"][name][part][language])
            for k, name in letters.items()
        }
        for part in ("text", "why")
    )
    subject = interview_pages.subject(group, language)
    page = words["item"].format(subject=subject)
    link = f"- [{page}]({interview_pages.page_of(group)}.md#{row['id']})"
    evidence = f"{link}\n{interview_pages.evidence(row, language)}"
    evidence = page_parts.absolute_links(evidence, INDEX, site_url)
    said = (
        markdown(row["question"][language]),
        "\n".join(f"- **{k}** {text[k]}" for k in letters),
        interview_pages.WORDS[language]["right"].format(letter=right)
        + words["space"]
        + why[right],
        "\n".join(f"- **{k}** {why[k]}" for k in letters if k != right),
        page_parts.lasting(evidence, site_url),
    )
    return [*map(html, said), subject, interview_pages.WORDS[language][row["level"]]]


def table(language: str) -> str:
    """Front, back and tags of every card, a line each, as flashcard programs take it.

    Anki reads the first lines; it keeps no schedule by this way, as no line has an id.
    """
    lines = ["#separator:tab", "#html:true", "#columns:Front\tBack\tTags"]
    lines.append("#tags column:3")
    for group, row, kind in cards():
        if kind == QUIZ:
            question, options, back, *_ = quiz_fields(group, row, language, "/")
            front = question + options
        else:
            said = dict(
                zip(FIELDS, fields(group, row, kind, language, "/"), strict=False)
            )
            front, back = (
                said["Question"] + said["FollowUp"] + said["Weak"],
                said["Short"],
            )
        columns = (" ".join(side.split()) for side in (front, back))
        lines.append("\t".join((*columns, " ".join(_tags(group, row, kind)))))
    return "\n".join(lines) + "\n"
