"""Flashcards: the question bank as an Anki deck, one a language.

A question makes three short cards: it and its short answer, its follow-up and that
one's answer, a weak answer and what is wrong with it. A card's id comes from its
question's id, so that a new deck updates the cards a reader has and keeps what they
learned. The same sources give the same bytes.
"""

import itertools
import sqlite3
import subprocess
from functools import cache

from mkdocs.structure.files import File

from scripts.site import asked, interview, plain
from scripts.site.archive import zipped
from scripts.site.source import ROOT
from scripts.site.written import html, markdown

INDEX = "interview/index.md"  # the page that offers the deck
URI = "interview/norms-measured.apkg"
IDS = {"zh": 1763700000001, "en": 1763700000002}  # never change: Anki knows them
# Neither do these, nor the template's name: Anki would keep a reader's old cards.
FIELDS = ("Question", "Short", "Answer", "Weak", "FollowUp", "Evidence")
LABELS = ("Group", "Level")
KINDS = ("question", "follow-up", "weak")  # of cards
WORDS = {
    "en": {
        "name": "Norms, Measured: interview",
        "about": "Questions on normalization in language models",
        "from": ", from {url}",
        "answer": "In full",
        "weak": "A weak answer: what is wrong with it?",
        "follow_up": "The follow-up",
        "page": "The question on the site, under {subject}",
    },
    "zh": {
        "name": "归一化实测：面试",
        "about": "大语言模型归一化的面试题",
        "from": "，出自 {url}",
        "answer": "完整回答",
        "weak": "较差的回答：错在哪里？",
        "follow_up": "追问",
        "page": "网站上的这道题，在“{subject}”一组",
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
# No colours: Anki's own follow its day and night.
STYLE = """\
.card { font: 1.1rem/1.6 system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans SC", sans-serif; text-align: left; }
main { display: block; max-width: 40rem; margin: 0 auto; padding: 0 .5rem; overflow-wrap: anywhere; }
.where { font-size: .8em; opacity: .75; }
.question:last-child { font-size: 1.15em; font-weight: 600; }
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
        content = _package(language, config.site_url or "/", moment(), _stamps())
        files.append(File.generated(config, URI, content=content))


def _stamps() -> tuple:
    """What docs/data holds; a changed file is a changed stamp."""
    files = sorted((ROOT / "docs" / "data").rglob("*.*"))
    return tuple((file, file.stat().st_mtime_ns) for file in files)


@cache
def _package(language: str, site_url: str, moment: int, stamps: tuple) -> bytes:
    return package(language, site_url, moment)


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
    model = Model(
        IDS[language],
        words["name"],
        fields=[{"name": name} for name in FIELDS + LABELS],
        templates=[
            {
                "name": "question",
                "qfmt": FRONT.format(language=language, **words),
                "afmt": BACK.format(language=language, **words),
            }
        ],
        css=STYLE,
    )
    source = words["from"].format(url=site_url) if plain.published(site_url) else ""
    made = Deck(IDS[language], words["name"], words["about"] + source)
    on_the_sheet = {row["id"] for _, row in asked.chosen()}
    cards = ((*pair, kind) for pair in interview.bank() for kind in KINDS)
    for place, (group, row, kind) in enumerate(cards):
        tags = [f"norms::{tag}" for tag in (group, row["level"], kind)]
        # A question's card is as old as the deck: its id does not name its kind.
        rest = () if kind == "question" else (kind,)
        made.add_note(
            Note(
                model,
                fields(group, row, kind, language, site_url),
                tags=tags + ["norms::sheet"] * (row["id"] in on_the_sheet),
                guid=guid_for("norms-measured", language, row["id"], *rest),
                due=place,
            )
        )
    return made


def fields(group: str, row: dict, kind: str, language: str, site_url: str) -> list[str]:
    """What a card says, as HTML, in the order of FIELDS and LABELS."""
    subject = asked.subject(group, language)
    page = WORDS[language]["page"].format(subject=subject)
    said = dict.fromkeys(FIELDS, "")
    said["Question"] = markdown(row["question"][language])
    said["Evidence"] = f"- [{page}]({group}.md#{row['id']})"
    if kind == "question":
        said["Short"] = markdown(row["short"][language])
        said["Answer"] = markdown(row["answer"][language])
        said["Evidence"] += f"\n{asked.evidence(row, language)}"
    elif kind == "follow-up":
        said["FollowUp"], said["Short"] = asked.pair(row, "follow_up", language)
    else:
        said["Weak"], said["Short"] = asked.pair(row, "weak", language)
        said["Weak"] = asked.WORDS[language]["quoted"].format(said["Weak"])
    evidence = plain.absolute_links(said["Evidence"], INDEX, site_url)
    said["Evidence"] = plain.lasting(evidence, site_url)
    shown = [html(said[name]) for name in FIELDS]
    return [*shown, subject, asked.WORDS[language][row["level"]]]
